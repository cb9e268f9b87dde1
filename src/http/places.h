// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "http/connection.h"

namespace gpuledger::http {

// All connections, and which one is closed when there is no room. A new one always gets a place: a client with many
// connections must not block a probe or a scrape. One thread.
class Places {
 public:
  Places(size_t most, size_t most_per_peer) : most_(most), most_per_peer_(most_per_peer) {}

  // Closes the connection that has been longest without a complete request: one of this peer's if it is at its limit,
  // or any if the total is at the limit. False: all candidates are kept.
  bool make_room(const std::string& peer);
  // The same if no connection can be accepted. False: none can be closed.
  bool end_longest_silent();

  void add(std::shared_ptr<Connection> connection);
  void remove(const Connection& connection);

  // A request came.
  void renew(const Connection& connection);
  // Is not closed until release(): its answer is about to be sent or is in a queue. At most half of the places, and
  // half of a peer's, can be kept; beyond that nothing changes.
  void keep(const Connection& connection);
  void release(const Connection& connection);

  std::list<std::shared_ptr<Connection>> all() const { return order_; }

 private:
  using Order = std::list<std::shared_ptr<Connection>>;
  struct Place {
    Order::iterator at;
    bool kept = false;
  };
  struct Share {
    size_t held = 0;
    size_t kept = 0;
  };

  bool end_first(const std::string* peer);

  const size_t most_;
  const size_t most_per_peer_;
  Order order_;  // the longest without a complete request comes first
  std::unordered_map<const Connection*, Place> places_;
  std::unordered_map<std::string, Share> peers_;
  size_t kept_ = 0;
};

}  // namespace gpuledger::http
