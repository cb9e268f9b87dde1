// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/apiserver.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <random>
#include <utility>

#include "identity/sources/pod_list_stream.h"
#include "identity/sources/watch_event.h"
#include "net/credentials.h"
#include "net/http_client.h"

namespace gpuledger::identity {
namespace {

using Duration = ApiServerOptions::Duration;
constexpr Duration kAtOnce{0};
constexpr auto kLongestRetryAfter = std::chrono::minutes(5);
constexpr size_t kLongestVersion = 128;

net::Peer peer_of(const ApiServerOptions& options) {
  std::string host = options.host;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return {"", std::move(host), options.port, net::TlsTrust{options.account.ca_file, false}};
}

// A version is any text from the server. It must not become another parameter.
std::string percent_encoded(std::string_view text) {
  static const char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out.append({'%', digits[byte >> 4], digits[byte & 15]});
    }
  }
  return out;
}

// Other characters could make the selector match other pods.
bool is_node_name(std::string_view name) {
  const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'; };
  return !name.empty() && name.size() <= 253 && std::all_of(name.begin(), name.end(), allowed);
}

std::optional<Duration> retry_after(const std::string& text) {
  const auto told = net::parse_retry_after(text);
  return told ? std::optional(std::min<Duration>(*told, kLongestRetryAfter)) : std::nullopt;
}

}  // namespace

// The thread's work: one request after the other. Each returns the wait before the next.
class ApiServerPods::Session {
 public:
  Session(ApiServerPods& owner, const std::stop_token& stop)
      : owner_(owner),
        options_(owner.options_),
        timer_(*options_.timer),
        stop_(stop),
        interrupt_(stop),
        client_(peer_of(options_), user_agent(), interrupt_),
        backoff_(options_.backoff) {}

  void run() {
    Duration wait = random_between(kAtOnce, options_.start_delay);
    while (timer_.sleep(stop_, wait)) wait = version_.empty() ? list() : watch();
  }

 private:
  Duration list();
  Duration watch();
  void take(std::string_view event);
  void publish();
  Duration refused(const ApiStatus& status, const net::HttpReply* reply);
  // The wait after a request that failed or was refused; empty for one that was answered.
  std::optional<Duration> not_answered(const Result<net::HttpReply>& reply);
  Duration rejected_token();
  Duration not_yet();

  Result<net::HttpReply> ask(net::HttpRequest& request, const net::BodySink& sink) {
    GL_TRY(token, net::read_token(options_.account.token_file));
    token_ = token;
    request.headers = {{"Authorization", "Bearer " + token}, {"Accept", "application/json"}};
    request.target.insert(0, "/api/v1/pods?fieldSelector=spec.nodeName%3D" + options_.node_name);
    return client_.get(request, sink);
  }
  Duration back_off() { return backoff_.next(timer_.now()); }
  Duration failed(const std::string& code, const std::string& reason) {
    if (!interrupt_.raised()) owner_.health_.fails(code, "API server " + client_.peer().text() + ": " + reason);
    return back_off();
  }
  Duration failed(const Error& error) {
    const bool away = error.code == Code::kUnavailable || error.code == Code::kTimeout;
    return failed(code_name(error.code),
                  error.message + (away ? "; may this program reach it? see network policies and firewalls" : ""));
  }
  // The next request is a list. The old view stays until then.
  Duration start_over() {
    version_.clear();
    return timer_.now() - listed_at_ < options_.relist_gap ? back_off() : kAtOnce;
  }
  Duration random_between(Duration least, Duration most) {
    return Duration(std::uniform_int_distribution<int64_t>(least.count(), std::max(least, most).count())(random_));
  }

  ApiServerPods& owner_;
  const ApiServerOptions& options_;
  const task::Timer& timer_;
  const std::stop_token stop_;
  const net::Interrupt interrupt_;
  const net::HttpClient client_;
  net::Backoff backoff_;
  std::minstd_rand random_{std::random_device{}()};

  std::string token_;    // of the last request
  std::string version_;  // where the watch resumes; empty: list first
  bool list_from_cache_ = true;
  bool waited_for_version_ = false;
  task::Timer::Time listed_at_;
  task::Timer::Time published_at_;
  // Of the current watch.
  uint64_t events_ = 0;
  bool dirty_ = false;
  std::optional<ApiStatus> error_;
};

std::optional<Duration> ApiServerPods::Session::not_answered(const Result<net::HttpReply>& reply) {
  if (!reply.ok()) return failed(reply.error());
  if (reply->status == 200) return {};
  ApiStatus status = parse_api_status(reply->body);
  status.code = reply->status;
  return refused(status, &*reply);
}

Duration ApiServerPods::Session::list() {
  net::HttpRequest request;
  // Version 0: the server's cache. Without it, old servers read all pods of the cluster from etcd.
  if (list_from_cache_) request.target = "&resourceVersion=0&resourceVersionMatch=NotOlderThan";
  request.accept_gzip = true;
  request.connect_within = request.head_within = request.longest_silence = options_.answer_within;
  request.whole_within = options_.list_within;
  PodListStream stream(options_.labels, options_.node_name);
  Status fed = ok_status();
  auto reply = ask(request, [&](std::string_view bytes) {
    fed = stream.feed(bytes);
    return fed.ok();
  });
  if (const auto wait = not_answered(reply)) return *wait;
  if (!fed.ok()) return failed(fed.error());
  auto pods = stream.finish();
  if (!pods.ok()) return failed(pods.error());
  if (pods->resource_version.empty() || pods->resource_version.size() > kLongestVersion)
    return failed("malformed", "a list without a version");
  listed_at_ = timer_.now();
  const size_t too_many = owner_.store_.replace_all(std::move(pods->pods), listed_at_);
  if (too_many + stream.left_out() > 0) owner_.health_.counts("pods_left_out");
  version_ = std::move(pods->resource_version);
  list_from_cache_ = true;
  publish();
  owner_.health_.works();
  return kAtOnce;
}

Duration ApiServerPods::Session::watch() {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(random_between(options_.watch_shortest, options_.watch_longest));
  net::HttpRequest request;
  request.target = "&watch=1&allowWatchBookmarks=true&resourceVersion=" + percent_encoded(version_) +
                   "&timeoutSeconds=" + std::to_string(std::max<int64_t>(seconds.count(), 1));
  request.connect_within = request.head_within = options_.answer_within;
  // A watch is silent without events: only its own timeout and TCP keepalive show that it still works.
  request.longest_silence = request.whole_within = seconds + options_.watch_grace;
  request.pause = options_.publish_gap;
  request.largest_body = UINT64_MAX;

  const auto begin = timer_.now();
  events_ = 0;
  error_.reset();
  bool accepted = false;
  Status fed = ok_status();
  JsonStream stream(JsonStream::Shape::kObjects, [this](std::string_view event) { take(event); });
  auto reply = ask(request, [&](std::string_view bytes) {
    if (!std::exchange(accepted, true)) owner_.health_.works();
    const uint64_t skipped = stream.skipped();
    fed = stream.feed(bytes);
    if (stream.skipped() > skipped) owner_.health_.counts("event_too_large");
    // A burst of events makes one view per gap; the last one is published once it is quiet.
    if (dirty_ && (bytes.empty() || timer_.now() - published_at_ >= options_.publish_gap)) publish();
    return fed.ok() && !error_;
  });
  if (dirty_) publish();
  if (interrupt_.raised()) return kAtOnce;
  if (error_) return refused(*error_, nullptr);
  if (!fed.ok()) {
    version_.clear();  // unreadable bytes may have hidden events
    return failed(fed.error());
  }
  if (!reply.ok() && accepted) {
    // The watch worked until it was cut: the source is not down before the next try fails.
    owner_.health_.counts(code_name(reply.error().code));
    return back_off();
  }
  if (const auto wait = not_answered(reply)) return *wait;
  waited_for_version_ = false;
  return events_ == 0 && timer_.now() - begin < options_.short_watch ? back_off() : kAtOnce;
}

void ApiServerPods::Session::take(std::string_view text) {
  using Kind = WatchEvent::Kind;
  if (error_) return;
  WatchEvent event = parse_watch_event(text, options_.labels);
  if (event.kind == Kind::kUnknown) return owner_.health_.counts("malformed");
  if (event.kind == Kind::kError) {
    error_ = std::move(event.status);
    return;
  }
  ++events_;
  waited_for_version_ = false;
  if (!event.version.empty()) version_ = std::move(event.version);
  // Bookmarks come once a minute: then pods deleted five minutes ago are dropped.
  dirty_ = true;
  if (event.kind == Kind::kBookmark) return;
  const std::string uid = event.pod->uid;
  // The delete event also has the last state, with containers that no earlier event had.
  const bool ours = event.node == options_.node_name;
  if (ours && !owner_.store_.put(std::move(*event.pod))) owner_.health_.counts("pods_left_out");
  if (event.kind == Kind::kDeleted) owner_.store_.remove(uid, timer_.now());
}

void ApiServerPods::Session::publish() {
  published_at_ = timer_.now();
  owner_.store_.publish(published_at_);
  dirty_ = false;
}

Duration ApiServerPods::Session::refused(const ApiStatus& status, const net::HttpReply* reply) {
  const std::string said = status.message.empty() ? "" : "; it says " + status.message;
  const std::string code = "http_" + std::to_string(status.code);
  if (status.expired()) {
    owner_.health_.counts("http_410");
    return start_over();
  }
  if (status.too_new) return not_yet();
  if (status.code == 401) return rejected_token();
  if (status.code == 403) {
    failed(code, "RBAC: needs pods list, watch (ClusterRole and ClusterRoleBinding for the service account)" + said);
    return options_.after_refusal;
  }
  if (status.code >= 300 && status.code < 400) {
    failed(code, "it redirects, which is not followed; is KUBERNETES_SERVICE_HOST the API server?");
    return options_.after_refusal;
  }
  // An unreadable version, for example: the same request would fail forever.
  if (status.code >= 400 && status.code < 500 && status.code != 429) version_.clear();
  const Duration wait = failed(code, "answers " + std::to_string(status.code) + said);
  if (reply == nullptr) return wait;
  return retry_after(reply->retry_after).value_or(wait);
}

// The file may have been replaced since the request was made.
Duration ApiServerPods::Session::rejected_token() {
  const auto token = net::read_token(options_.account.token_file);
  if (token.ok() && *token != token_) {
    owner_.health_.counts("http_401");
    return kAtOnce;
  }
  return failed("http_401", "does not accept the token in " + options_.account.token_file +
                                "; does the service account still exist?");
}

// One of several API servers may be behind the others. Client-go does the same.
Duration ApiServerPods::Session::not_yet() {
  owner_.health_.counts("http_504");
  if (!std::exchange(waited_for_version_, true)) return options_.too_new_wait;
  waited_for_version_ = false;
  list_from_cache_ = false;
  return start_over();
}

Result<ApiServerOptions> read_cluster_environment() {
  const char* const host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* const port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || *host == '\0' || port == nullptr)
    return Error{Code::kNotFound, "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"};
  ApiServerOptions options;
  options.host = host;
  const std::string_view digits = port;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), options.port);
  if (error != std::errc() || end != digits.data() + digits.size() || options.port == 0)
    return Error{Code::kMalformed, "KUBERNETES_SERVICE_PORT is not a port"};
  return options;
}

Result<std::unique_ptr<ApiServerPods>> ApiServerPods::start(ApiServerOptions options) {
  if (options.node_name.empty())
    return Error{
        Code::kMalformed,
        "the API server needs --node-name or NODE_NAME, to list only this node's pods; set it from spec.nodeName"};
  if (!is_node_name(options.node_name)) return Error{Code::kMalformed, "the node's name is not valid in Kubernetes"};
  if (options.host.empty()) return Error{Code::kMalformed, "the API server's host is not known"};
  return std::unique_ptr<ApiServerPods>(new ApiServerPods(std::move(options)));
}

ApiServerPods::ApiServerPods(ApiServerOptions options) : options_(std::move(options)) {
  health_.needs_thread(thread_.start([this](const std::stop_token& stop) { Session(*this, stop).run(); }));
}

}  // namespace gpuledger::identity
