// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "http/connection.h"

namespace gpuledger::http {

// All connections, and which one is closed when there is no room. A new one always gets a place: a client with many
// connections must not block a probe or a scrape. One thread.
//
// First go those that never completed a request, then those that wait for their next one, and last those that are being
// answered. In the first two groups the client with the most of them gives way, with its oldest; in the last the one
// whose answer has not moved for the longest, since its client may not read at all. As long as new connections hold at
// most a quarter of the places they go last: a flood of requests must leave them time to ask.
class Places {
 public:
  Places(size_t most, size_t most_per_peer) : most_(most), most_per_peer_(most_per_peer) {}

  // Closes one connection if there is no room: one of this peer's if it is at its limit, or any if the total is at the
  // limit. False: all candidates are kept.
  bool make_room(const std::string& peer);
  // The same if no connection can be accepted. False: none can be closed.
  bool end_one() { return end_first(nullptr); }

  void add(std::shared_ptr<Connection> connection);
  void remove(const Connection& connection);

  // A request is complete, or a part of its answer was taken.
  void answering(const Connection& connection) { enter(connection, State::kAnswering); }
  // It has its answer. One whose request was never complete stays among those.
  void answered(const Connection& connection) { enter(connection, State::kIdle); }

  // Is not closed until release(): its answer is about to be sent or is in a queue. At most half of the places, and
  // half of a peer's, can be kept; beyond that nothing changes.
  void keep(const Connection& connection);
  void release(const Connection& connection);

  std::list<std::shared_ptr<Connection>> all() const { return order_; }

 private:
  enum class State { kNew, kIdle, kAnswering };
  using Order = std::list<std::shared_ptr<Connection>>;
  struct Place {
    Order::iterator at;
    State state = State::kNew;
    bool kept = false;
  };
  struct Share {
    size_t held = 0;
    size_t kept = 0;
    std::array<size_t, 3> in{};  // by state
    size_t& of(State state) { return in.at(static_cast<size_t>(state)); }
  };

  void enter(const Connection& connection, State state);
  bool end_first(const std::string* peer);

  const size_t most_;
  const size_t most_per_peer_;
  Order order_;  // the longest without an event comes first
  std::unordered_map<const Connection*, Place> places_;
  std::unordered_map<std::string, Share> peers_;
  Share all_;
};

}  // namespace gpuledger::http
