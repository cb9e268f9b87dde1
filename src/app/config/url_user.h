// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/http_url.h"
#include "base/result.h"

namespace gpuledger::app {

struct UrlParts {
  std::string plain;          // without the user
  std::string user_password;  // "user:password"; empty: none
};

// "https://user:password@node/path". No message shows a password.
Result<UrlParts> split_user(std::string_view text);

// Where --push-url sends to.
struct PushUrl {
  HttpUrl http;               // its text is for messages: without the password and the query
  std::string user_password;  // as above
  friend bool operator==(const PushUrl&, const PushUrl&) = default;
};

// With its path, because each receiver has another.
Result<PushUrl> parse_push_url(std::string_view text);

}  // namespace gpuledger::app
