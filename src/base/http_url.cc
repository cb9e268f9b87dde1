// SPDX-License-Identifier: Apache-2.0
#include "base/http_url.h"

#include <algorithm>
#include <charconv>

#include "base/quote.h"

namespace gpuledger {

std::string shown_url(std::string_view text) {
  const size_t query = std::min(text.find_first_of("?#"), text.size());
  const size_t at = text.rfind('@');
  if (at == text.npos) return std::string(text.substr(0, query));
  // An @ in the query, or a password with a ? or #: both sides may be secret.
  if (at > query) return "...";
  return "..." + std::string(text.substr(at, query - at));
}

Result<HttpUrl> parse_http_url(std::string_view text) {
  constexpr std::string_view kForm = "is not a URL (write http://127.0.0.1:9400/metrics)";
  HttpUrl url;
  url.text = shown_url(text);
  url.tls = text.starts_with("https://");
  if (!url.tls && !text.starts_with("http://")) return malformed(shown_url(text), kForm);
  // It would show in the log and in the process list.
  if (text.find('@') != std::string_view::npos) {
    return Error{Code::kMalformed, "a URL with a password is refused (write %40 for an @ in the path)"};
  }
  // A blank or a line break would end the request line.
  const bool printable = std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (!printable || text.find('#') != std::string_view::npos) return malformed(shown_url(text), kForm);

  const std::string_view rest = text.substr(text.find("//") + 2);
  const size_t path = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view host = rest.substr(0, path);
  url.target = rest.substr(path);
  if (!url.target.starts_with('/')) url.target.insert(0, 1, '/');

  std::string_view port = url.tls ? "443" : "80";
  const size_t bracket = host.starts_with('[') ? host.find(']') : 0;
  if (bracket == std::string_view::npos) return malformed(shown_url(text), kForm);
  if (const size_t colon = host.find(':', bracket); colon != std::string_view::npos) {
    port = host.substr(colon + 1);
    host = host.substr(0, colon);
  }
  if (host.starts_with('[')) {
    if (!host.ends_with(']')) return malformed(shown_url(text), kForm);
    host = host.substr(1, host.size() - 2);
  }
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), url.port);
  const bool whole = error == std::errc() && end == port.data() + port.size() && url.port != 0;
  if (host.empty() || !whole) return malformed(shown_url(text), kForm);
  url.host = host;
  // The zone of a link-local address, "[fe80::1%25eth0]" in a URL.
  if (const size_t zone = host.find("%25"); bracket > 0 && zone != std::string_view::npos) url.host.erase(zone + 1, 2);
  return url;
}

}  // namespace gpuledger
