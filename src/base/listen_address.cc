// SPDX-License-Identifier: Apache-2.0
#include "base/listen_address.h"

#include <sys/un.h>

#include <algorithm>
#include <charconv>

#include "base/quote.h"

namespace gpuledger {
namespace {

constexpr std::string_view kForms = "is not an address (write :9400, 127.0.0.1:9400, [::1]:9400 or unix:/path)";
constexpr size_t kLongestSocketPath = sizeof(sockaddr_un::sun_path) - 1;  // without the final zero

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  ListenAddress address;
  address.text = text;
  if (text.starts_with("unix:")) {
    address.unix_path = text.substr(5);
    if (!address.unix_path.starts_with('/') || address.unix_path.ends_with('/')) return malformed(text, kForms);
    if (address.unix_path.size() <= kLongestSocketPath) return address;
    return malformed(text, "is longer than a socket's path may be (" + std::to_string(kLongestSocketPath) + " bytes)");
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return malformed(text, kForms);
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    if (host.find(':') == std::string_view::npos) return malformed(text, kForms);
  } else if (host.find_first_of(":[]") != std::string_view::npos) {
    return malformed(text, kForms);
  }
  if (host.find_first_of(" \t/?#@,\"'") != std::string_view::npos) return malformed(text, kForms);
  const std::string_view port = text.substr(colon + 1);
  const bool digits = std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (port.empty() || !digits) return malformed(text, kForms);
  if (std::from_chars(port.data(), port.data() + port.size(), address.port).ec != std::errc())
    return malformed(text, "has a port over 65535");
  address.host = host;
  return address;
}

}  // namespace gpuledger
