// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"
#include "net/interrupt.h"

struct ssl_st;

namespace gpuledger::net {

struct TlsTrust {
  std::string ca_file;       // the only trusted CAs; read for every connection
  bool skip_verify = false;  // for kubelets with self-signed certificates
};

// The server: a unix socket or a host, with or without TLS.
struct Peer {
  std::string unix_path;
  std::string host;  // a name or an address, IPv6 without brackets
  uint16_t port = 0;
  std::optional<TlsTrust> tls;

  std::string authority() const;  // for the Host header: "10.0.0.1:443", "[fd00::1]:443", "localhost"
  std::string text() const;       // for logs
};

// A connection whose calls all have a deadline and end once the interrupt is raised. The thread must have SIGPIPE
// blocked: OpenSSL writes without MSG_NOSIGNAL.
class Wire {
 public:
  using Deadline = Interrupt::Clock::time_point;

  static Result<std::unique_ptr<Wire>> open(const Peer& peer, Deadline deadline, const Interrupt& interrupt);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  Status write(std::string_view bytes, Deadline deadline);
  // 0: the peer closed the connection properly.
  Result<size_t> read(char* to, size_t size, Deadline deadline);
  // The uid of a unix socket's server, from the kernel. Empty: another kind of connection.
  std::optional<uint32_t> peer_user() const;

 private:
  Wire(UniqueFd fd, const Interrupt& interrupt) : fd_(std::move(fd)), interrupt_(interrupt) {}
  Status start_tls(const Peer& peer, Deadline deadline);
  Status wait_for_tls(int outcome, Deadline deadline);

  UniqueFd fd_;
  const Interrupt& interrupt_;
  ssl_st* tls_ = nullptr;
};

}  // namespace gpuledger::net
