// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuledger {

// ":9400" (every interface, IPv4 and IPv6), "host:9400", "127.0.0.1:0", "[::1]:9400", "unix:/path".
struct ListenAddress {
  std::string text;       // as given, for messages
  std::string host;       // empty: every interface
  uint16_t port = 0;      // 0: the kernel picks one
  std::string unix_path;  // not empty: a unix socket; only text applies besides
};

// The message follows the name of the setting: `"x" is not an address (write :9400, ...)`.
Result<ListenAddress> parse_listen_address(std::string_view text);

}  // namespace gpuledger
