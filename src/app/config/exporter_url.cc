// SPDX-License-Identifier: Apache-2.0
#include "app/config/exporter_url.h"

#include <charconv>
#include <optional>

#include "base/listen_address.h"
#include "base/quote.h"

namespace gpuledger::app {
namespace {

constexpr std::string_view kSnapshotPath = "/api/v1/snapshot";
constexpr std::string_view kExporterForm =
    "is not an exporter's address (write http://NODE:9400, https://NODE:9400, unix:/PATH or none)";
constexpr std::string_view kPrometheusForm =
    "is not a Prometheus server's address (write http://HOST:9090, https://HOST/PREFIX or unix:/PATH)";

// What stands before an @ may be a password.
Error refuse(std::string_view text, std::string_view form) {
  const size_t at = text.rfind('@');
  const std::string shown = at == text.npos ? std::string(text) : "..." + std::string(text.substr(at));
  return {Code::kMalformed, in_quotes(shown) + " " + std::string(form)};
}

// "%40" to "@". Empty: a wrong escape.
std::optional<std::string> unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned value = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2) return std::nullopt;
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

// The path of the JSON below the one that was given.
void point_at_snapshot(std::string& target) {
  while (target.ends_with('/')) target.pop_back();
  if (!target.ends_with(kSnapshotPath)) target += kSnapshotPath;
}

Result<ExporterUrl> parse_unix(std::string_view text, std::string_view form) {
  ExporterUrl url;
  url.text = text;
  url.unix_path = text.substr(text.find(':') + 1);
  if (!url.unix_path.starts_with('/') || url.unix_path.find('\0') != std::string::npos) return refuse(text, form);
  return url;
}

// The target is the path as given.
Result<ExporterUrl> parse_server(std::string_view text, std::string_view form) {
  ExporterUrl url;
  if (text.starts_with("unix:")) return parse_unix(text, form);
  std::string plain(text);
  const size_t host = text.find("//");
  if (host == text.npos) return refuse(text, form);
  const size_t path = text.find_first_of("/?#", host + 2);
  const size_t at = text.substr(0, path).rfind('@');
  if (at != text.npos && at > host) {
    plain = std::string(text.substr(0, host + 2)) + std::string(text.substr(at + 1));
    const auto user = unescape(text.substr(host + 2, at - host - 2));
    if (!user || user->empty() || user->front() == ':') {
      return Error{Code::kMalformed, in_quotes(plain) +
                                         " with a user and a password that cannot be read (write "
                                         "USER:PASSWORD@, and %40 for @, %3A for :, %25 for %)"};
    }
    url.user_password = *user + (user->find(':') == user->npos ? ":" : "");
  }
  auto http = parse_http_url(plain);
  if (!http.ok() || http->target.find('?') != std::string::npos) return refuse(plain, form);
  url.http = *std::move(http);
  url.text = plain;
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
