// SPDX-License-Identifier: Apache-2.0
#include "app/config/url_user.h"

#include <charconv>
#include <optional>
#include <utility>

#include "base/quote.h"

namespace gpuledger::app {
namespace {

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

}  // namespace

Result<UrlParts> split_user(std::string_view text) {
  UrlParts parts{std::string(text), {}};
  const size_t host = text.find("//");
  // Without http:// at its start it is an error, whose message shows it. The part before an @ may be a password.
  if (host == text.npos || text.find(':') + 1 != host) {
    if (const size_t user = text.rfind('@'); user != text.npos) parts.plain = "..." + std::string(text.substr(user));
    return parts;
  }
  const size_t path = text.find_first_of("/?#", host + 2);
  // A / in a password ends the host too early: the rest of the password would be taken for a path and shown.
  if (path != text.npos && text.find('@', path) != text.npos) {
    return Error{Code::kMalformed,
                 "an @ stands after the host (in a password write %2F for /, %23 for # and %3F for ?; in a path write "
                 "%40 for @)"};
  }
  const size_t at = text.substr(0, path).rfind('@');
  if (at == text.npos || at < host) return parts;
  parts.plain = std::string(text.substr(0, host + 2)) + std::string(text.substr(at + 1));
  const auto user = unescape(text.substr(host + 2, at - host - 2));
  if (!user || user->empty() || user->front() == ':') {
    return Error{Code::kMalformed, in_quotes(shown_url(parts.plain)) +
                                       " with a user and a password that cannot be read (write "
                                       "USER:PASSWORD@, and %40 for @, %3A for :, %25 for %)"};
  }
  parts.user_password = *user + (user->find(':') == user->npos ? ":" : "");
  return parts;
}

Result<PushUrl> parse_push_url(std::string_view text) {
  GL_TRY(parts, split_user(text));
  auto http = parse_http_url(parts.plain);
  if (!http.ok()) {
    return Error{Code::kMalformed, in_quotes(shown_url(parts.plain)) +
                                       " is not a receiver's address (write http://HOST:9090/api/v1/write)"};
  }
  if (http->target == "/" || http->target.starts_with("/?")) {
    return Error{Code::kMalformed, in_quotes(http->text) +
                                       " has no path (write it whole: http://HOST:9090/api/v1/write for Prometheus, "
                                       "https://HOST/api/v1/push for Mimir)"};
  }
  return PushUrl{*std::move(http), std::move(parts.user_password)};
}

}  // namespace gpuledger::app
