// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/upstream.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/file.h"
#include "identity/sources/service_account.h"
#include "net/http_client.h"
#include "net/tls_client.h"

namespace gpuledger::app {
namespace {

constexpr const char* kWrongPath = "; is this the path of its metrics?";

std::string seconds_text(Nanoseconds time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

}  // namespace

Upstream::Upstream(UpstreamOptions options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      health_{.source = "dcgm-exporter", .up = false, .reason = "not asked yet", .errors = {}, .undecided = true},
      thread_([this](const std::stop_token& stop) { return look(stop); }) {}

std::shared_ptr<const expose::UpstreamText> Upstream::view(Timestamp now) const {
  const MutexLock lock(mutex_);
  return text_ && now.steady - as_of_ <= options_.stale_after ? text_ : nullptr;
}

SourceHealth Upstream::health() const {
  const MutexLock lock(mutex_);
  return health_;
}

bool Upstream::wait(Nanoseconds patience) const {
  MutexLock lock(mutex_);
  return looked_.wait_for(lock, patience, [this]() GL_REQUIRES(mutex_) { return has_looked_; });
}

task::PollThread::Next Upstream::look(const std::stop_token& stop) {
  code_.clear();
  const Status done = options_.url ? read_url(stop) : read_file_again();
  if (stop.stop_requested()) return {options_.after_failure};
  const MutexLock lock(mutex_);
  has_looked_ = true;
  looked_.notify_all();
  health_.up = done.ok();
  health_.undecided = false;
  health_.reason.clear();
  if (done.ok()) return {options_.url ? options_.url_period : options_.file_period};
  health_.reason = (options_.url ? options_.url->text + ": " : std::string()) + done.error().message;
  ++health_.errors[code_.empty() ? code_name(done.error().code) : code_];
  return {options_.after_failure};
}

Status Upstream::read_url(const std::stop_token& stop) {
  const HttpUrl& url = *options_.url;
  net::Peer peer{"", url.host, url.port, std::nullopt};
  if (url.tls) peer.tls = net::TlsTrust{net::system_authorities(), false};
  net::HttpRequest request;
  request.target = url.target;
  request.headers = {{"Accept", "text/plain;version=0.0.4"}};
  request.accept_gzip = true;
  request.connect_within = request.head_within = request.longest_silence = request.whole_within =
      options_.answer_within;
  request.largest_body = expose::kLargestUpstream;
  const net::Interrupt interrupt(stop);
  const Nanoseconds asked = clock_.now().steady;
  auto reply = net::HttpClient(std::move(peer), identity::user_agent(), interrupt).get(request);
  if (!reply) return Error{reply.error().code, reply.error().message + "; is it running?"};
  if (reply->status != 200) {
    code_ = "http_" + std::to_string(reply->status);
    return Error{Code::kUnavailable, "answers " + std::to_string(reply->status) + kWrongPath};
  }
  const Status taken = take(reply->body, asked);
  return taken.ok() ? taken : Error{taken.error().code, taken.error().message + kWrongPath};
}

Result<Upstream::FileState> Upstream::read_state() const {
  struct stat file {};
  if (::stat(options_.file.c_str(), &file) != 0) return errno_error("cannot read", options_.file, errno);
  const auto written = std::chrono::seconds(file.st_mtim.tv_sec) + Nanoseconds(file.st_mtim.tv_nsec);
  return FileState{file.st_ino, file.st_size, written};
}

// Negative for a time in the future.
Nanoseconds Upstream::age_of(const FileState& state) const {
  return clock_.now().wall - state.written;
}

Status Upstream::read_file_again() {
  const auto state = read_state();
  if (!state) return Error{state.error().code, state.error().message + "; is its folder mounted here?"};
  // A clock that was set back leaves a future time, which would never be stale.
  const Nanoseconds age = age_of(*state);
  if (age > options_.stale_after || -age > options_.stale_after) {
    code_ = "stale";
    return Error{Code::kUnavailable,
                 options_.file + (age > Nanoseconds(0) ? ": written " + seconds_text(age) + " ago; is it running?"
                                                       : ": written in the future; check the clocks")};
  }
  if (last_file_ == *state) return ok_status();
  GL_TRY(text, read_file(options_.file, expose::kLargestUpstream));
  // The file is written in place: the text may be half old and half new.
  const auto after = read_state();
  if (!after || *after != *state)
    return Error{Code::kUnavailable, options_.file + ": changed while it was read; write beside it and rename"};
  GL_TRY_STATUS(take(text, clock_.now().steady - std::max(age, Nanoseconds(0))).about(options_.file));
  last_file_ = *state;
  return ok_status();
}

// as_of: steady.
Status Upstream::take(std::string_view text, Nanoseconds as_of) {
  GL_TRY(parsed, expose::parse_upstream(text));
  auto view = std::make_shared<const expose::UpstreamText>(std::move(parsed));
  const MutexLock lock(mutex_);
  for (size_t i = 0; i < view->faults.size(); ++i) {
    if (view->faults[i] > 0) health_.errors[expose::fault_name(static_cast<expose::LineFault>(i))] += view->faults[i];
  }
  text_ = std::move(view);
  as_of_ = as_of;
  return ok_status();
}

}  // namespace gpuledger::app
