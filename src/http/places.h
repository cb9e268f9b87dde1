// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "http/connection.h"

namespace gpuledger::http {

// The connections there are, and who has to go when there is no room. A newcomer always finds a place: somebody who
// holds connections must not keep a probe or a scrape out. One thread.
class Places {
 public:
  Places(size_t most, size_t most_per_peer) : most_(most), most_per_peer_(most_per_peer) {}

  // Ends the connection that has gone longest without a whole request: one of this peer's, where it has as many as it
  // may have, or anybody's, where there are as many as there may be. False: all that could go are kept.
  bool make_room(const std::string& peer);
  // The same for somebody who cannot be accepted at all. False: nobody can go.
  bool end_longest_silent();

  void add(std::shared_ptr<Connection> connection);
  void remove(const Connection& connection);

  // A whole request came.
  void renew(const Connection& connection);
  // Does not have to go until release(): its answer is a matter of moments, or of its turn. At most half of the places,
  // and half of a peer's, can be kept; beyond that nothing changes.
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
  Order order_;  // who went longest without a whole request comes first
  std::unordered_map<const Connection*, Place> places_;
  std::unordered_map<std::string, Share> peers_;
  size_t kept_ = 0;
};

}  // namespace gpuledger::http
