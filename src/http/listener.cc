// SPDX-License-Identifier: Apache-2.0
#include "http/listener.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace gpuledger::http {
namespace {

constexpr int kBacklog = SOMAXCONN;

// The problem and the remedy, in one line.
Error listen_error(const ListenAddress& address, int error, std::string_view setting) {
  Code code = Code::kUnavailable;
  std::string advice;
  switch (error) {
    case EADDRINUSE:
      advice =
          fmt::format("it is already in use; stop the program that listens there or choose another with {}", setting);
      break;
    case EACCES:
    case EPERM:
      code = Code::kPermission;
      advice = "permission denied; choose a port above 1023 or a directory this user may write to";
      break;
    case EADDRNOTAVAIL: advice = "no interface of this machine has that address"; break;
    case ENOENT: advice = "its directory does not exist; create it first"; break;
    default: advice = std::strerror(error);
  }
  return {code, fmt::format("cannot listen on {}: {}", address.text, advice)};
}

// The descriptor, or a negative errno.
int bind_and_listen(int family, const sockaddr* where, socklen_t size, bool dual_stack) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return -errno;
  const int on = 1, v6_only = dual_stack ? 0 : 1;
  if (family != AF_UNIX && ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) return -errno;
  if (family == AF_INET6 && ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only) != 0)
    return -errno;
  if (::bind(fd.get(), where, size) != 0 || ::listen(fd.get(), kBacklog) != 0) return -errno;
  return fd.release();
}

int listen_everywhere(uint16_t port, int& family) {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  family = AF_INET6;
  int fd = bind_and_listen(AF_INET6, reinterpret_cast<sockaddr*>(&v6), sizeof v6, true);
  // A kernel booted without IPv6 gives one of these; then IPv4 alone is enough.
  if (fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL) return fd;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  family = AF_INET;
  return bind_and_listen(AF_INET, reinterpret_cast<sockaddr*>(&v4), sizeof v4, false);
}

Result<int> listen_on_host(const ListenAddress& address, int& family, std::string_view setting) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  if (const int error = ::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found); error != 0)
    return Error{Code::kNotFound,
                 fmt::format("cannot listen on {}: host {}: {}", address.text, address.host, ::gai_strerror(error))};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  // A name with both gets its IPv4 address, as in Go programs.
  const addrinfo* chosen = found;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next)
    if (each->ai_family == AF_INET) {
      chosen = each;
      break;
    }
  family = chosen->ai_family;
  const int fd = bind_and_listen(family, chosen->ai_addr, chosen->ai_addrlen, false);
  if (fd < 0) return listen_error(address, -fd, setting);
  return fd;
}

std::string tcp_address(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&storage), size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "?";
  return storage.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

// Removes only the socket that an ended program left behind.
Status remove_stale_socket(const ListenAddress& address, const sockaddr_un& where, std::string_view setting) {
  struct stat file {};
  if (::lstat(address.unix_path.c_str(), &file) != 0) return ok_status();
  if (!S_ISSOCK(file.st_mode))
    return Error{
        Code::kUnavailable,
        fmt::format("cannot listen on {}: the file exists and is not a socket; remove it or choose another path",
                    address.text)};
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe) return listen_error(address, errno, setting);
  // EAGAIN: a listener with a full queue, so it is running.
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0 || errno == EAGAIN)
    return listen_error(address, EADDRINUSE, setting);
  if (errno != ECONNREFUSED) return listen_error(address, errno, setting);
  if (::unlink(address.unix_path.c_str()) != 0 && errno != ENOENT) return listen_error(address, errno, setting);
  return ok_status();
}

}  // namespace

Result<Listener> Listener::open(const ListenAddress& address, std::string_view setting) {
  Listener listener;
  if (address.unix_path.empty()) {
    if (address.host.empty()) {
      const int fd = listen_everywhere(address.port, listener.family_);
      if (fd < 0) return listen_error(address, -fd, setting);
      listener.fd_.reset(fd);
    } else {
      GL_TRY(fd, listen_on_host(address, listener.family_, setting));
      listener.fd_.reset(fd);
    }
    listener.address_ = tcp_address(listener.fd_.get());
    return listener;
  }
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  std::memcpy(where.sun_path, address.unix_path.c_str(), address.unix_path.size() + 1);
  GL_TRY_STATUS(remove_stale_socket(address, where, setting));
  const int fd = bind_and_listen(AF_UNIX, reinterpret_cast<sockaddr*>(&where), sizeof where, false);
  if (fd < 0) return listen_error(address, -fd, setting);
  listener.fd_.reset(fd);
  listener.family_ = AF_UNIX;
  listener.address_ = "unix:" + address.unix_path;
  struct stat file {};
  if (::lstat(address.unix_path.c_str(), &file) == 0) {
    listener.unix_path_ = address.unix_path;
    listener.device_ = file.st_dev;
    listener.inode_ = file.st_ino;
  }
  return listener;
}

Listener::Listener(Listener&& other) noexcept
    : fd_(std::move(other.fd_)),
      family_(other.family_),
      address_(std::move(other.address_)),
      unix_path_(std::exchange(other.unix_path_, {})),
      device_(other.device_),
      inode_(other.inode_) {}

Listener::~Listener() {
  // Another instance may have taken the path meanwhile; its file is not removed.
  struct stat file {};
  if (!unix_path_.empty() && ::lstat(unix_path_.c_str(), &file) == 0 && file.st_dev == device_ && file.st_ino == inode_)
    ::unlink(unix_path_.c_str());
}

}  // namespace gpuledger::http
