// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

namespace gpuledger::http {

// One client, as seen by the limits of connections and memory.
class Connection {
 public:
  explicit Connection(std::string peer) : peer_(std::move(peer)) {}
  virtual ~Connection() = default;

  // Closes it and removes it from every list.
  virtual void finish() = 0;
  // Its client: peer_of() its socket.
  const std::string& peer() const { return peer_; }

 private:
  const std::string peer_;
};

}  // namespace gpuledger::http
