#include "http/listen_address.h"

#include <fmt/core.h>
#include <sys/un.h>

#include <charconv>

namespace gpuledger::http {
namespace {

Error malformed(std::string_view text, std::string_view why) {
  return {Code::kMalformed,
          fmt::format("listen address \"{}\": {}; write it as :9400, host:9400, [::1]:9400 or unix:/path", text, why)};
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  ListenAddress address;
  address.text = text;
  if (text.starts_with("unix:")) {
    address.unix_path = text.substr(5);
    if (!address.unix_path.starts_with('/')) return malformed(text, "the path of a unix socket must be absolute");
    if (address.unix_path.size() >= sizeof(sockaddr_un::sun_path))
      return malformed(text, fmt::format("the path is longer than {} bytes", sizeof(sockaddr_un::sun_path) - 1));
    return address;
  }
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return malformed(text, "no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']') && host.size() > 2) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]") != std::string_view::npos) {
    return malformed(text, "an IPv6 address must stand in brackets");
  }
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (port.empty() || error != std::errc() || end != port.data() + port.size())
    return malformed(text, fmt::format("the port \"{}\" is no number from 0 to 65535", port));
  address.host = host;
  return address;
}

}  // namespace gpuledger::http
