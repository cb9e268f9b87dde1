// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuledger {

struct HttpUrl {
  std::string text;  // for messages: without the query
  bool tls = false;
  std::string host;  // IPv6 without brackets, its zone after a %
  uint16_t port = 0;
  std::string target;  // path and query, at least "/"
  friend bool operator==(const HttpUrl&, const HttpUrl&) = default;
};

// "http://127.0.0.1:9400/metrics", "https://[::1]/metrics?x=1". The message follows the name of the setting.
Result<HttpUrl> parse_http_url(std::string_view text);

// A URL, valid or not, without the parts that may be secret: before an @, and after a ? or #.
std::string shown_url(std::string_view text);

}  // namespace gpuledger
