// SPDX-License-Identifier: Apache-2.0
#include "app/bill/allocation_server.h"

#include <fmt/core.h>

#include <condition_variable>
#include <list>
#include <optional>
#include <utility>

#include "app/bill/allocation_json.h"
#include "app/bill/open_questions.h"
#include "base/mutex.h"
#include "http/routes.h"
#include "task/leavable_thread.h"

namespace gpuledger::app {
namespace {

using Done = OpenQuestion::Done;

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

std::optional<AllocationForm> form_of(std::string_view path) {
  if (path == "/allocation" || path == "/allocation/compute") return AllocationForm::kFull;
  if (path == "/allocation/summary" || path == "/allocation/compute/summary") return AllocationForm::kSummary;
  if (path == "/allocation/autocomplete") return AllocationForm::kNames;
  return std::nullopt;
}

// Two of the largest answers.
constexpr size_t kBytesBeingSent = 128 << 20;

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
  Desk(MakeStatement make, const Clock& clock, const AllocationLimits& limits)
      : shared_(std::make_shared<Shared>(std::move(make), clock, limits)), workers_(limits.workers) {}

  Status start() {
    for (task::LeavableThread& worker : workers_)
      GL_TRY_STATUS(worker.start([shared = shared_] { work(*shared); }).about("a worker that makes bills"));
    return ok_status();
  }

  http::Forget answer(const http::Question& question, const Done& done) {
    const auto at_once = [&](http::Reply reply) {
      done(std::move(reply));
      return http::Forget();
    };
    if (question.method != "GET" && question.method != "HEAD") {
      http::Reply reply = error_reply(405, "only GET and HEAD");
      reply.headers.emplace_back("Allow", "GET, HEAD");
      return at_once(std::move(reply));
    }
    const std::string_view path = http::path_of(question.target);
    if (path == "/healthz") return at_once(http::text_reply(200, "ok"));
    const auto form = form_of(path);
    if (!form) return at_once(error_reply(404, "not found; ask for /allocation?window=7d&aggregate=namespace"));
    std::string_view query = question.target;
    query.remove_prefix(std::min(query.find('?'), query.size() - 1) + 1);
    query = query.substr(0, query.find('#'));
    const std::chrono::sys_seconds now(std::chrono::floor<std::chrono::seconds>(shared_->clock.now().wall));
    auto parsed = parse_allocation_question(query, now, *form);
    if (!parsed.ok()) return at_once(error_reply(400, parsed.error().message));
    return enqueue(std::move(*parsed), question.peer, done);
  }

  void stop() {
    {
      MutexLock lock(shared_->mutex);
      shared_->stopping = true;
      shared_->questions.clear();
    }
    shared_->wake.notify_all();
    for (task::LeavableThread& worker : workers_) (void)worker.end(kStopPatience);
  }

 private:
  static constexpr Nanoseconds kStopPatience = std::chrono::milliseconds(200);

  struct Shared {
    Shared(MakeStatement statement_maker, const Clock& given_clock, const AllocationLimits& given)
        : make(std::move(statement_maker)),
          clock(given_clock),
          limits(given),
          questions({given.waiting, given.waiting_for_one, given.workers_per_peer}),
          kept(given) {}

    const MakeStatement make;
    const Clock& clock;  // not used after stop(): a worker that is left behind may outlive it
    const AllocationLimits limits;
    Mutex mutex;
    std::condition_variable_any wake;
    OpenQuestions questions GL_GUARDED_BY(mutex);
    KeptAnswers kept GL_GUARDED_BY(mutex);
    bool stopping GL_GUARDED_BY(mutex) = false;
  };

  http::Forget enqueue(AllocationQuestion question, const std::string& peer, const Done& done) {
    MutexLock lock(shared_->mutex);
    if (const http::Reply* kept = shared_->kept.find(question.key(), shared_->clock.now().steady)) {
      done(*kept);
      return {};
    }
    const OpenQuestions::Asked asked = shared_->questions.ask(std::move(question), peer, done);
    for (const Done& displaced : asked.displaced) displaced(busy_reply("too many questions of one address at once"));
    if (!asked.question) {
      done(busy_reply(asked.refusal));
      return {};
    }
    shared_->wake.notify_one();
    return [shared = shared_, question = asked.question, asker = asked.asker] {
      MutexLock again(shared->mutex);
      shared->questions.forget(question, asker);
    };
  }

  static void work(Shared& shared) {
    MutexLock lock(shared.mutex);
    while (true) {
      OpenQuestionPtr open;
      shared.wake.wait(lock, [&]() GL_REQUIRES(shared.mutex) {
        if (!shared.stopping) open = shared.questions.take();
        return shared.stopping || open;
      });
      if (shared.stopping) return;
      lock.unlock();
      http::Reply reply = compute(shared, *open);
      lock.lock();
      if (shared.stopping) return;
      const std::vector<Done> waiting = shared.questions.finish(open);
      if (reply.status == 200) shared.kept.add(open->key, reply, shared.clock.now().steady);
      lock.unlock();
      for (const Done& done : waiting) done(reply);
      lock.lock();
    }
  }

  static http::Reply compute(const Shared& shared, const OpenQuestion& open) {
    const AllocationQuestion& question = open.question;
    std::vector<Statement> statements;
    size_t lines = 0;
    for (const BillSpan& span : question.spans) {
      if (open.given_up->raised()) return error_reply(504, "nobody waits for it");
      auto statement = shared.make(span, question, open.given_up);
      if (!statement.ok()) return error_reply(status_of(statement.error().code), statement.error().message);
      lines += statement->lines.size();
      if (lines > shared.limits.most_lines)
        return error_reply(400, fmt::format("the answer would have more than {} allocations; write a longer step, a "
                                            "shorter window or another aggregate",
                                            shared.limits.most_lines));
      statements.push_back(std::move(*statement));
    }
    if (question.form == AllocationForm::kNames)
      return json_reply(200, names_json(statements, question.search, question.most_names));
    const bool summary = question.form == AllocationForm::kSummary;
    return json_reply(200, allocation_json(statements, {question.include_idle, question.in_one, summary}));
  }

  const std::shared_ptr<Shared> shared_;
  std::vector<task::LeavableThread> workers_;
};

AllocationServer::AllocationServer(std::shared_ptr<Desk> desk) : desk_(std::move(desk)) {}

AllocationServer::~AllocationServer() {
  stop();
}

Result<std::unique_ptr<AllocationServer>> AllocationServer::start(http::ServerOptions options, MakeStatement make,
                                                                  const Clock& clock, AllocationLimits limits) {
  auto desk = std::make_shared<Desk>(std::move(make), clock, limits);
  options.answerer = [desk](const http::Question& question, const Done& done) { return desk->answer(question, done); };
  options.limits.bytes_being_sent = std::max(options.limits.bytes_being_sent, kBytesBeingSent);
  std::unique_ptr<AllocationServer> server(new AllocationServer(desk));
  GL_TRY_STATUS(desk->start());
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
