// SPDX-License-Identifier: Apache-2.0
#include "http/routes.h"

#include <fmt/core.h>

#include <chrono>

#include "base/html_text.h"
#include "http/negotiate.h"
#include "http/page/page.h"
#include "model/owner.h"

namespace gpuledger::http {
namespace {

constexpr const char* kGpuPath = "/gpu/metrics";
constexpr const char* kSnapshotPath = "/api/v1/snapshot";
constexpr const char* kHistoryPath = "/api/v1/history";
constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr const char* kTextFormat = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* kOpenMetricsFormat = "application/openmetrics-text; version=1.0.0; charset=utf-8";

// Relative links, so that the page works behind a proxy under another path.
std::string write_links(const RouteSettings& settings) {
  std::string links;
  for (const auto& [path, what] :
       std::initializer_list<std::pair<std::string, const char*>>{{settings.metrics_path, "metrics for Prometheus"},
                                                                  {kGpuPath, "the GPUs under DCGM's names"},
                                                                  {kSnapshotPath, "the same as JSON"},
                                                                  {kHistoryPath, "the last hour as JSON"},
                                                                  {"/healthz", "is the process alive"},
                                                                  {"/readyz", "is there a fresh snapshot"}}) {
    const std::string safe = escape_html(path);
    links += fmt::format("    <li><a href=\".{}\">{}</a> {}</li>\n", safe, safe, what);
  }
  return links;
}

Reply page_reply(const char* content_type, std::string body) {
  Reply reply;
  reply.content_type = content_type;
  reply.headers = {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
       "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cache-Control", "no-cache"}};  // a new page must not use the old script
  reply.body = std::make_shared<const std::string>(std::move(body));
  return reply;
}

Reply index_page(const RouteSettings& settings) {
  std::string page(page_html());
  page.replace(page.find(kLinksMark), kLinksMark.size(), write_links(settings));
  return page_reply("text/html; charset=utf-8", std::move(page));
}

Reply page_script() {
  std::string kinds;
  for (const OwnerKindRow& row : kOwnerKinds) {
    kinds.append(kinds.empty() ? "" : ", ").append(row.word).append(": '").append(row.group).append("'");
  }
  std::string script(page_js());
  script.replace(script.find(kKindsMark), kKindsMark.size(), kinds);
  return page_reply("text/javascript; charset=utf-8", std::move(script));
}

// Why the program is not ready; empty if it is.
std::string unready_reason(const Snapshot* snapshot, const RouteSettings& settings, Nanoseconds now) {
  if (snapshot == nullptr || !snapshot->cycle) return "no snapshot yet";
  const auto seconds = [](Nanoseconds time) { return std::chrono::duration<double>(time).count(); };
  const SampleBatch& batch = snapshot->cycle->batch;
  const Nanoseconds age = now - batch.at.steady;
  if (settings.stale_after.count() > 0 && age > settings.stale_after)
    return fmt::format("the last snapshot is {:.1f} s old, more than {:.1f} s", seconds(age),
                       seconds(settings.stale_after));
  if (!batch.health.up)
    return fmt::format("the GPU source {} is down: {}", batch.health.source,
                       batch.health.reason.empty() ? "no reason given" : batch.health.reason);
  return {};
}

// A text of the snapshot, packed if the client wants it. Does not copy the text, and holds only the text: a slow client
// must not keep the snapshot.
void set_body(Reply& reply, const std::shared_ptr<const Snapshot>& snapshot, const LazyText& plain,
              std::string_view accept_encoding, PackedSnapshot& packed) {
  if (negotiate_gzip(accept_encoding)) reply.body = packed.pack(snapshot, plain.get());
  if (reply.body)
    reply.headers.emplace_back("Content-Encoding", "gzip");
  else
    reply.body = plain.share();
}

using Text = LazyText Snapshot::*;

Reply metrics(const RequestFacts& request, const std::shared_ptr<const Snapshot>& snapshot, Text text, Text openmetrics,
              PackedSnapshot& packed) {
  Reply reply;
  if (!snapshot) {
    reply = text_reply(503, "no snapshot yet");
  } else {
    const bool open = negotiate_format(request.accept) == Format::kOpenMetrics;
    reply.content_type = open ? kOpenMetricsFormat : kTextFormat;
    set_body(reply, snapshot, (*snapshot).*(open ? openmetrics : text), request.accept_encoding, packed);
  }
  reply.headers.emplace_back("Vary", "Accept, Accept-Encoding");
  return reply;
}

Reply gpu_metrics(const RequestFacts& request, const std::shared_ptr<const Snapshot>& snapshot,
                  PackedSnapshot& packed) {
  if (snapshot && !snapshot->serves_gpu)
    return text_reply(404,
                      "the collectors dcgm and dcgm-modern are off; switch one on with --collector.dcgm or "
                      "--collector.dcgm-modern");
  return metrics(request, snapshot, &Snapshot::gpu_text, &Snapshot::gpu_openmetrics, packed);
}

Reply json_reply(const RequestFacts& request, const std::shared_ptr<const Snapshot>& snapshot, Text text,
                 PackedSnapshot& packed) {
  if (!snapshot) return text_reply(503, "no snapshot yet");
  Reply reply;
  reply.content_type = "application/json";
  reply.headers.emplace_back("Vary", "Accept-Encoding");
  set_body(reply, snapshot, (*snapshot).*text, request.accept_encoding, packed);
  return reply;
}

bool is_health_path(std::string_view path) {
  return path == "/healthz" || path == "/health";
}

bool is_ready_path(std::string_view path) {
  return path == "/readyz" || path == "/-/ready";
}

}  // namespace

std::string_view path_of(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    const auto slash = target.find('/', scheme.size());
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
    break;
  }
  return target.substr(0, target.find_first_of("?#"));
}

bool is_probe(std::string_view target) {
  const std::string_view path = path_of(target);
  return is_health_path(path) || is_ready_path(path);
}

Reply text_reply(unsigned status, std::string text) {
  Reply reply;
  reply.status = status;
  reply.content_type = kPlain;
  reply.body = std::make_shared<const std::string>(std::move(text) + "\n");
  return reply;
}

Reply route(const RequestFacts& request, const RouteSettings& settings, const std::shared_ptr<const Snapshot>& snapshot,
            PackedSnapshot& packed, Nanoseconds steady_now) {
  const std::string_view path = path_of(request.target);
  const bool is_metrics = path == settings.metrics_path;
  const bool is_gpu = path == kGpuPath;
  const bool is_ready = is_ready_path(path);
  const bool is_health = is_health_path(path);
  const bool is_json = path == kSnapshotPath || path == kHistoryPath;
  const bool is_page = path == "/" || path == "/page.css" || path == "/page.js";
  if (!is_metrics && !is_gpu && !is_ready && !is_health && !is_json && !is_page)
    return text_reply(404, "not found; / lists all pages");
  if (request.method != "GET" && request.method != "HEAD") {
    Reply reply = text_reply(405, "only GET and HEAD");
    reply.headers.emplace_back("Allow", "GET, HEAD");
    return reply;
  }
  if (is_metrics) return metrics(request, snapshot, &Snapshot::text, &Snapshot::openmetrics, packed);
  if (is_gpu) return gpu_metrics(request, snapshot, packed);
  if (is_json) {
    return json_reply(request, snapshot, path == kHistoryPath ? &Snapshot::history : &Snapshot::json, packed);
  }
  if (is_health) return text_reply(200, "ok");
  if (path == "/") return index_page(settings);
  if (path == "/page.css") return page_reply("text/css; charset=utf-8", std::string(page_css()));
  if (path == "/page.js") return page_script();
  const std::string reason = unready_reason(snapshot.get(), settings, steady_now);
  return reason.empty() ? text_reply(200, "ready") : text_reply(503, reason);
}

}  // namespace gpuledger::http
