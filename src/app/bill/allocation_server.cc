// SPDX-License-Identifier: Apache-2.0
#include "app/bill/allocation_server.h"

#include <fmt/core.h>

#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <utility>

#include "app/bill/allocation_json.h"
#include "app/bill/allocation_question.h"
#include "base/mutex.h"
#include "http/routes.h"
#include "task/leavable_thread.h"

namespace gpuledger::app {
namespace {

using Done = std::function<void(http::Reply)>;

http::Reply json_reply(unsigned status, std::string text) {
  http::Reply reply;
  reply.status = status;
  reply.content_type = "application/json";
  reply.headers.emplace_back("Cache-Control", "no-store");
  reply.body = std::make_shared<const std::string>(std::move(text));
  return reply;
}

http::Reply error_reply(unsigned status, std::string_view message) {
  return json_reply(status, allocation_error(status, message));
}

http::Reply busy_reply(std::string_view message) {
  http::Reply reply = error_reply(503, message);
  reply.headers.emplace_back("Retry-After", "5");
  return reply;
}

// Of an error while a bill is computed. The question was read before, so what is malformed is an answer of the server
// that is asked, or a setting.
unsigned status_of(Code code) {
  switch (code) {
    case Code::kNotFound: return 400;
    case Code::kMalformed:
    case Code::kNotSupported:  // too much for it
    case Code::kUnavailable:
    case Code::kPermission: return 502;  // of the server that is asked
    case Code::kTimeout: return 504;
    case Code::kInternal: return 500;
  }
  return 500;
}

// Two of the largest answers.
constexpr size_t kBytesBeingSent = 128 << 20;

struct Job {
  AllocationQuestion question;
  Nanoseconds give_up;  // steady
  std::vector<Done> waiting{};
};

// Answers of the last minute, the oldest first.
class KeptAnswers {
 public:
  explicit KeptAnswers(const AllocationLimits& limits) : limits_(limits) {}

  const http::Reply* find(const std::string& key, Nanoseconds now) {
    while (!answers_.empty() && answers_.front().until <= now) drop_first();
    for (const Kept& kept : answers_)
      if (kept.key == key) return &kept.reply;
    return nullptr;
  }
  void add(std::string key, http::Reply reply, Nanoseconds now) {
    if (reply.body->size() > limits_.kept_bytes) return;
    bytes_ += reply.body->size();
    answers_.push_back({std::move(key), std::move(reply), now + limits_.keep_answers});
    while (answers_.size() > limits_.kept_answers || bytes_ > limits_.kept_bytes) drop_first();
  }

 private:
  struct Kept {
    std::string key;
    http::Reply reply;
    Nanoseconds until;
  };
  void drop_first() {
    bytes_ -= answers_.front().reply.body->size();
    answers_.pop_front();
  }

  const AllocationLimits limits_;
  std::list<Kept> answers_;
  size_t bytes_ = 0;
};

}  // namespace

// Takes questions on the server's io thread and has its workers answer them. The workers own what they share with it.
class AllocationServer::Desk {
 public:
  Desk(MakeStatement make, const Clock& clock, const AllocationLimits& limits, Nanoseconds answer_timeout)
      : answer_timeout_(answer_timeout), shared_(std::make_shared<Shared>(std::move(make), clock, limits)) {
    for (size_t i = 0; i < limits.workers; ++i)
      workers_.push_back(std::make_unique<task::LeavableThread>([shared = shared_] { work(*shared); }));
  }

  void answer(const http::Question& question, const Done& done) {
    if (question.method != "GET" && question.method != "HEAD") {
      http::Reply reply = error_reply(405, "only GET and HEAD");
      reply.headers.emplace_back("Allow", "GET, HEAD");
      return done(std::move(reply));
    }
    const std::string_view path = http::path_of(question.target);
    if (path == "/healthz") return done(http::text_reply(200, "ok"));
    if (path != "/allocation" && path != "/allocation/compute")
      return done(error_reply(404, "not found; ask for /allocation?window=7d&aggregate=namespace"));
    std::string_view query = question.target;
    query.remove_prefix(std::min(query.find('?'), query.size() - 1) + 1);
    query = query.substr(0, query.find('#'));
    const std::chrono::sys_seconds now(std::chrono::floor<std::chrono::seconds>(shared_->clock.now().wall));
    auto parsed = parse_allocation_question(query, now);
    if (!parsed.ok()) return done(error_reply(400, parsed.error().message));
    enqueue(std::move(*parsed), done);
  }

  void stop() {
    {
      MutexLock lock(shared_->mutex);
      shared_->stopping = true;
      shared_->queue.clear();
      shared_->open.clear();
    }
    shared_->wake.notify_all();
    for (const auto& worker : workers_) (void)worker->end(kStopPatience);
  }

 private:
  static constexpr Nanoseconds kStopPatience = std::chrono::milliseconds(200);

  struct Shared {
    Shared(MakeStatement statement_maker, const Clock& given_clock, const AllocationLimits& given)
        : make(std::move(statement_maker)), clock(given_clock), limits(given), kept(given) {}

    const MakeStatement make;
    const Clock& clock;  // not used after stop(): a worker that is left behind may outlive it
    const AllocationLimits limits;
    Mutex mutex;
    std::condition_variable_any wake;
    std::deque<std::string> queue GL_GUARDED_BY(mutex);
    std::map<std::string, Job> open GL_GUARDED_BY(mutex);  // waiting or being computed, by key
    KeptAnswers kept GL_GUARDED_BY(mutex);
    bool stopping GL_GUARDED_BY(mutex) = false;
  };

  void enqueue(AllocationQuestion question, const Done& done) {
    const Nanoseconds now = shared_->clock.now().steady;
    const std::string key = question.key();
    MutexLock lock(shared_->mutex);
    if (const http::Reply* kept = shared_->kept.find(key, now)) return done(*kept);
    if (const auto found = shared_->open.find(key); found != shared_->open.end()) {
      Job& job = found->second;
      if (job.waiting.size() >= shared_->limits.waiting_for_one)
        return done(busy_reply("too many ask the same question at once"));
      job.give_up = now + answer_timeout_;
      job.waiting.push_back(done);
      return;
    }
    if (shared_->queue.size() >= shared_->limits.waiting) return done(busy_reply("too many questions at once"));
    shared_->open.emplace(key, Job{std::move(question), now + answer_timeout_, {done}});
    shared_->queue.push_back(key);
    shared_->wake.notify_one();
  }

  static void work(Shared& shared) {
    MutexLock lock(shared.mutex);
    while (true) {
      shared.wake.wait(lock, [&]() GL_REQUIRES(shared.mutex) { return shared.stopping || !shared.queue.empty(); });
      if (shared.stopping) return;
      const std::string key = std::move(shared.queue.front());
      shared.queue.pop_front();
      const AllocationQuestion question = shared.open.at(key).question;
      lock.unlock();
      http::Reply reply = compute(shared, key, question);
      lock.lock();
      if (shared.stopping) return;
      const std::vector<Done> waiting = std::move(shared.open.at(key).waiting);
      shared.open.erase(key);
      if (reply.status == 200) shared.kept.add(key, reply, shared.clock.now().steady);
      lock.unlock();
      for (const Done& done : waiting) done(reply);
      lock.lock();
    }
  }

  // Whether nobody waits for it any more.
  static bool given_up(Shared& shared, const std::string& key) {
    MutexLock lock(shared.mutex);
    const auto found = shared.open.find(key);
    return found == shared.open.end() || shared.clock.now().steady > found->second.give_up;
  }

  static http::Reply compute(Shared& shared, const std::string& key, const AllocationQuestion& question) {
    std::vector<Statement> statements;
    size_t lines = 0;
    const std::function<bool()> stop = [&] { return given_up(shared, key); };
    for (const BillSpan& span : question.spans) {
      if (stop()) return error_reply(504, "the answer took too long; ask for a shorter time");
      auto statement = shared.make(span, question.by, question.spread, stop);
      if (!statement.ok()) return error_reply(status_of(statement.error().code), statement.error().message);
      lines += statement->lines.size();
      if (lines > shared.limits.most_lines)
        return error_reply(400, fmt::format("the answer would have more than {} allocations; write a longer step, a "
                                            "shorter window or another aggregate",
                                            shared.limits.most_lines));
      statements.push_back(std::move(*statement));
    }
    return json_reply(200, allocation_json(statements, {question.include_idle, question.in_one}));
  }

  const Nanoseconds answer_timeout_;
  const std::shared_ptr<Shared> shared_;
  std::vector<std::unique_ptr<task::LeavableThread>> workers_;
};

AllocationServer::AllocationServer(std::shared_ptr<Desk> desk) : desk_(std::move(desk)) {}

AllocationServer::~AllocationServer() {
  stop();
}

Result<std::unique_ptr<AllocationServer>> AllocationServer::start(http::ServerOptions options, MakeStatement make,
                                                                  const Clock& clock, AllocationLimits limits) {
  auto desk = std::make_shared<Desk>(std::move(make), clock, limits, options.limits.answer_timeout);
  options.answerer = [desk](const http::Question& question, const Done& done) { desk->answer(question, done); };
  options.limits.bytes_being_sent = std::max(options.limits.bytes_being_sent, kBytesBeingSent);
  std::unique_ptr<AllocationServer> server(new AllocationServer(desk));
  auto started = http::Server::start(std::move(options), server->no_snapshots_, clock);
  if (!started.ok()) return started.error();
  server->server_ = std::move(*started);
  return server;
}

std::vector<std::string> AllocationServer::addresses() const {
  return server_->addresses();
}

Status AllocationServer::reload() {
  return server_->reload();
}

void AllocationServer::stop() {
  if (server_) server_->stop();
  desk_->stop();
}

}  // namespace gpuledger::app
