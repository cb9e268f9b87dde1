// SPDX-License-Identifier: Apache-2.0
#include "http/peer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace gpuledger::http {
namespace {

std::string bytes(const void* begin, size_t size) {
  return {static_cast<const char*>(begin), size};
}

constexpr int kUnsentBytes = 128 << 10;

}  // namespace

std::string peer_of(int socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "gone";
  if (storage.ss_family == AF_INET)
    return "4" + bytes(&reinterpret_cast<const sockaddr_in&>(storage).sin_addr, sizeof(in_addr));
  if (storage.ss_family == AF_INET6) {
    const in6_addr& address = reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr;
    // A dual-stack socket shows IPv4 clients in this form.
    if (IN6_IS_ADDR_V4MAPPED(&address)) return "4" + bytes(&address.s6_addr[12], 4);
    return "6" + bytes(&address.s6_addr[0], 8);
  }
  ucred user{};
  size = sizeof user;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &user, &size) != 0) return "unix";
  return "u" + std::to_string(user.uid);
}

bool has_left(int socket) {
  pollfd one{socket, POLLRDHUP, 0};
  return ::poll(&one, 1, 0) > 0;
}

void set_up_socket(int socket) {
  const int on = 1;
  // Unix sockets have neither option. TCP's buffer keeps the size that a long path needs; only unsent bytes are
  // limited.
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes, sizeof kUnsentBytes) != 0)
    ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kUnsentBytes, sizeof kUnsentBytes);
}

}  // namespace gpuledger::http
