// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

namespace gpuledger::http {

// One client, as those see it who share out places and memory.
class Connection {
 public:
  explicit Connection(std::string peer) : peer_(std::move(peer)) {}
  virtual ~Connection() = default;

  // Closes it and takes it out of every list.
  virtual void finish() = 0;
  // Whose it is: peer_of() its socket.
  const std::string& peer() const { return peer_; }

 private:
  const std::string peer_;
};

}  // namespace gpuledger::http
