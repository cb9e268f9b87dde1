// SPDX-License-Identifier: Apache-2.0
#include "app/config/exporter_url.h"

#include <utility>

#include "app/config/url_user.h"
#include "base/listen_address.h"
#include "base/quote.h"

namespace gpuledger::app {
namespace {

constexpr std::string_view kSnapshotPath = "/api/v1/snapshot";
constexpr std::string_view kExporterForm =
    "is not an exporter's address (write http://NODE:9400, https://NODE:9400, unix:/PATH or none)";
constexpr std::string_view kPrometheusForm =
    "is not a Prometheus server's address (write http://HOST:9090, https://HOST/PREFIX or unix:/PATH)";

// The path of the JSON below the one that was given.
void point_at_snapshot(std::string& target) {
  while (target.ends_with('/')) target.pop_back();
  if (!target.ends_with(kSnapshotPath)) target += kSnapshotPath;
}

Result<ExporterUrl> parse_unix(std::string_view text, std::string_view form) {
  ExporterUrl url;
  url.text = text;
  url.unix_path = text.substr(text.find(':') + 1);
  if (!url.unix_path.starts_with('/') || url.unix_path.find('\0') != std::string::npos)
    return malformed(shown_url(text), form);
  return url;
}

// The target is the path as given.
Result<ExporterUrl> parse_server(std::string_view text, std::string_view form) {
  ExporterUrl url;
  if (text.starts_with("unix:")) return parse_unix(text, form);
  if (text.find("//") == text.npos) return malformed(shown_url(text), form);
  GL_TRY(parts, split_user(text));
  auto http = parse_http_url(parts.plain);
  if (!http.ok()) return malformed(shown_url(parts.plain), form);
  if (http->target.find('?') != std::string::npos)
    return malformed(shown_url(parts.plain), "with a query " + std::string(form));
  url.http = *std::move(http);
  url.user_password = std::move(parts.user_password);
  url.text = std::move(parts.plain);
  return url;
}

}  // namespace

Result<ExporterUrl> parse_exporter_url(std::string_view text) {
  if (text == "none") {
    ExporterUrl url;
    url.none = true;
    return url;
  }
  GL_TRY(url, parse_server(text, kExporterForm));
  point_at_snapshot(url.http.target);
  return url;
}

Result<ExporterUrl> parse_prometheus_url(std::string_view text) {
  GL_TRY(url, parse_server(text, kPrometheusForm));
  std::string& target = url.http.target;
  const auto drop_slashes = [&] {
    while (target.ends_with('/')) target.pop_back();
  };
  drop_slashes();
  for (const std::string_view tail : {"/query", "/api/v1"}) {
    if (target.ends_with(tail)) target.resize(target.size() - tail.size());
    drop_slashes();
  }
  return url;
}

ExporterUrl local_exporter(std::string_view listen_address) {
  const auto address = parse_listen_address(listen_address);
  ExporterUrl url;
  if (!address.ok() || (address->unix_path.empty() && address->port == 0)) return url;
  url.http.target = kSnapshotPath;
  if (!address->unix_path.empty()) {
    url.unix_path = address->unix_path;
    url.text = "unix:" + url.unix_path;
    return url;
  }
  const bool any = address->host.empty() || address->host == "0.0.0.0" || address->host == "::";
  url.http.host = any ? "127.0.0.1" : address->host;
  url.http.port = address->port;
  const bool v6 = url.http.host.find(':') != std::string::npos;
  url.text = "http://" + (v6 ? "[" + url.http.host + "]" : url.http.host) + ":" + std::to_string(url.http.port);
  return url;
}

}  // namespace gpuledger::app
