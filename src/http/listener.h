// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/listen_address.h"
#include "base/result.h"

namespace gpuledger::http {

// A bound and listening socket. The destructor closes it and removes its socket file if still its own.
class Listener {
 public:
  // setting: where the address is from, for messages.
  static Result<Listener> open(const ListenAddress& address, std::string_view setting = "--listen-address");
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  int family() const { return family_; }
  // "[::]:9400" or "unix:/path", with actual port.
  const std::string& address() const { return address_; }
  // Gives the descriptor away; this object keeps the socket file.
  int release_fd() { return fd_.release(); }

 private:
  Listener() = default;

  UniqueFd fd_;
  int family_ = 0;
  std::string address_;
  std::string unix_path_;
  uint64_t device_ = 0;  // with inode_: our file
  uint64_t inode_ = 0;
};

}  // namespace gpuledger::http
