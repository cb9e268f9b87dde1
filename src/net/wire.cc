// SPDX-License-Identifier: Apache-2.0
#include "net/wire.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/mutex.h"
#include "base/openssl_reason.h"
#include "net/tls_client.h"
#include "task/leavable_thread.h"

namespace gpuledger::net {
namespace {

using Deadline = Wire::Deadline;

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

Status wait_for(int fd, short events, Deadline deadline, const Interrupt& interrupt) {
  while (true) {
    pollfd both[] = {{fd, events, 0}, {interrupt.fd(), POLLIN, 0}};
    const int ready = ::poll(both, 2, Interrupt::milliseconds_until(deadline));
    if (ready < 0 && errno != EINTR) return Error{Code::kInternal, std::string("poll: ") + std::strerror(errno)};
    if (ready > 0 && both[1].revents != 0) return Error{Code::kUnavailable, "ended"};
    if (ready > 0) return ok_status();
    if (Interrupt::Clock::now() >= deadline) return Error{Code::kTimeout, "no answer in time"};
  }
}

Result<std::vector<Address>> look_up(const std::string& host, uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0)
    return Error{Code::kNotFound, std::string("host name: ") + ::gai_strerror(error)};
  std::vector<Address> all;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    Address& address = all.emplace_back();
    std::memcpy(&address.bytes, each->ai_addr, each->ai_addrlen);
    address.size = each->ai_addrlen;
  }
  ::freeaddrinfo(found);
  return all;
}

// A name server may take long and cannot be interrupted, so a separate thread asks it and is left behind if it takes
// too long. Peers in a cluster are usually addresses, which need no name server.
Result<std::vector<Address>> read_addresses(const Peer& peer, Deadline deadline, const Interrupt& interrupt) {
  if (auto numeric = look_up(peer.host, peer.port, AI_NUMERICHOST); numeric.ok()) return numeric;
  struct Asked {
    Mutex mutex;
    Interrupt done;
    std::optional<Result<std::vector<Address>>> answer GL_GUARDED_BY(mutex);
  };
  const auto asked = std::make_shared<Asked>();
  task::LeavableThread resolver;
  const Status started = resolver.start([asked, host = peer.host, port = peer.port] {
    auto answer = look_up(host, port, AI_ADDRCONFIG);
    const MutexLock lock(asked->mutex);
    asked->answer = std::move(answer);
    asked->done.raise();
  });
  if (!started.ok()) return Status(started).about("host name").error();
  GL_TRY_STATUS(wait_for(asked->done.fd(), POLLIN, deadline, interrupt).about("host name"));
  const MutexLock lock(asked->mutex);
  return std::move(*asked->answer);
}

// Detects dead peers within a minute even if nothing is sent: a watch is mostly silent.
void keep_alive(int fd) {
  const int on = 1, idle_s = 30, between_s = 10, tries = 3, unacknowledged_ms = 30'000;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof between_s);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof tries);
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof unacknowledged_ms);
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Result<UniqueFd> connect_to(const Address& address, Deadline deadline, const Interrupt& interrupt) {
  UniqueFd fd(::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno_error("socket", "", errno);
  if (address.bytes.ss_family != AF_UNIX) keep_alive(fd.get());
  int error = 0;
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.bytes), address.size) != 0) error = errno;
  if (error == EINPROGRESS) {
    GL_TRY_STATUS(wait_for(fd.get(), POLLOUT, deadline, interrupt));
    socklen_t size = sizeof error;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error == 0) return fd;
  return Error{errno_error("", "", error).code, std::string("connect: ") + std::strerror(error)};
}

Result<UniqueFd> connect_unix(const std::string& path, Deadline deadline, const Interrupt& interrupt) {
  Address address;
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  if (path.size() >= sizeof where.sun_path)
    return Error{Code::kMalformed, "the path of a socket has 107 bytes at most"};
  std::memcpy(where.sun_path, path.c_str(), path.size() + 1);
  std::memcpy(&address.bytes, &where, sizeof where);
  address.size = sizeof where;
  return connect_to(address, deadline, interrupt);
}

Result<UniqueFd> connect_host(const Peer& peer, Deadline deadline, const Interrupt& interrupt) {
  GL_TRY(addresses, read_addresses(peer, deadline, interrupt));
  Error last{Code::kNotFound, "host name: no address"};
  for (size_t i = 0; i < addresses.size(); ++i) {
    // An address that never answers must leave time for the others.
    const auto now = Interrupt::Clock::now();
    const auto share = (deadline - now) / static_cast<int64_t>(addresses.size() - i);
    auto fd = connect_to(addresses[i], now + share, interrupt);
    if (fd.ok()) return fd;
    last = fd.error();
    if (interrupt.raised()) break;
  }
  return last;
}

}  // namespace

std::string Peer::authority() const {
  if (!unix_path.empty()) return "localhost";
  const bool v6 = host.find(':') != std::string::npos;
  // A zone means something on this machine only.
  return (v6 ? "[" + host.substr(0, host.find('%')) + "]" : host) + ":" + std::to_string(port);
}

std::string Peer::text() const {
  return unix_path.empty() ? (tls ? "https://" : "http://") + authority() : "unix:" + unix_path;
}

Result<std::unique_ptr<Wire>> Wire::open(const Peer& peer, Deadline deadline, const Interrupt& interrupt) {
  GL_TRY(fd, peer.unix_path.empty() ? connect_host(peer, deadline, interrupt)
                                    : connect_unix(peer.unix_path, deadline, interrupt));
  std::unique_ptr<Wire> wire(new Wire(std::move(fd), interrupt));
  if (!peer.tls) return wire;
  GL_TRY_STATUS(wire->start_tls(peer, deadline));
  return wire;
}

Wire::~Wire() {
  SSL_free(tls_);
}

Status Wire::start_tls(const Peer& peer, Deadline deadline) {
  GL_TRY(context, read_tls_context(peer));
  tls_ = SSL_new(context.get());  // keeps the context
  if (tls_ == nullptr || SSL_set_fd(tls_, fd_.get()) != 1 || !expect_peer(tls_, peer))
    return Error{Code::kInternal, "OpenSSL: " + openssl_reason()};
  while (true) {
    ERR_clear_error();
    const int outcome = SSL_connect(tls_);
    if (outcome == 1) return ok_status();
    const int kind = SSL_get_error(tls_, outcome);
    if (kind != SSL_ERROR_WANT_READ && kind != SSL_ERROR_WANT_WRITE) return tls_error(tls_, peer);
    const short events = kind == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    GL_TRY_STATUS(wait_for(fd_.get(), events, deadline, interrupt_).about("TLS"));
  }
}

// After SSL_read or SSL_write returned no bytes: waits for what it needs, or returns the error.
Status Wire::wait_for_tls(int outcome, Deadline deadline) {
  switch (SSL_get_error(tls_, outcome)) {
    case SSL_ERROR_WANT_READ: return wait_for(fd_.get(), POLLIN, deadline, interrupt_);
    case SSL_ERROR_WANT_WRITE: return wait_for(fd_.get(), POLLOUT, deadline, interrupt_);
    default: return Error{Code::kUnavailable, "connection cut: " + openssl_reason()};
  }
}

Status Wire::write(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    if (interrupt_.raised()) return Error{Code::kUnavailable, "ended"};
    ERR_clear_error();
    const ssize_t written = tls_ != nullptr ? SSL_write(tls_, bytes.data(), static_cast<int>(bytes.size()))
                                            : ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written > 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
      continue;
    }
    if (tls_ == nullptr && errno != EAGAIN && errno != EINTR)
      return Error{Code::kUnavailable, std::string("connection cut: ") + std::strerror(errno)};
    GL_TRY_STATUS(tls_ != nullptr ? wait_for_tls(static_cast<int>(written), deadline)
                                  : wait_for(fd_.get(), POLLOUT, deadline, interrupt_));
  }
  return ok_status();
}

std::optional<uint32_t> Wire::peer_user() const {
  ucred who{};
  socklen_t size = sizeof who;
  // TCP answers too, but without a uid.
  if (::getsockopt(fd_.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.pid == 0) return std::nullopt;
  return who.uid;
}

Result<size_t> Wire::read(char* to, size_t size, Deadline deadline) {
  while (true) {
    // A peer that never stops sending must not block our end.
    if (interrupt_.raised()) return Error{Code::kUnavailable, "ended"};
    if (Interrupt::Clock::now() >= deadline) return Error{Code::kTimeout, "no answer in time"};
    ERR_clear_error();
    const ssize_t got = tls_ != nullptr ? SSL_read(tls_, to, static_cast<int>(size)) : ::recv(fd_.get(), to, size, 0);
    if (got > 0) return static_cast<size_t>(got);
    if (tls_ != nullptr) {
      if (SSL_get_error(tls_, static_cast<int>(got)) == SSL_ERROR_ZERO_RETURN) return size_t{0};
      GL_TRY_STATUS(wait_for_tls(static_cast<int>(got), deadline));
      continue;
    }
    if (got == 0) return size_t{0};
    if (errno != EAGAIN && errno != EINTR)
      return Error{Code::kUnavailable, std::string("connection cut: ") + std::strerror(errno)};
    GL_TRY_STATUS(wait_for(fd_.get(), POLLIN, deadline, interrupt_));
  }
}

}  // namespace gpuledger::net
