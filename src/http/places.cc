// SPDX-License-Identifier: Apache-2.0
#include "http/places.h"

#include <utility>

namespace gpuledger::http {

bool Places::make_room(const std::string& peer) {
  const auto share = peers_.find(peer);
  if (share != peers_.end() && share->second.held >= most_per_peer_ && !end_first(&peer)) return false;
  return order_.size() < most_ || end_first(nullptr);
}

bool Places::end_first(const std::string* peer) {
  Share& among = peer == nullptr ? all_ : peers_.at(*peer);
  const bool crowded = 4 * among.of(State::kNew) > among.held;
  // The least goes, of equals the first.
  const auto rank = [&](const Connection& connection, State state) {
    const int group = state == State::kNew ? (crowded ? 0 : 3) : static_cast<int>(state);
    const size_t others = state == State::kAnswering ? 0 : most_ - peers_.at(connection.peer()).of(state);
    return std::pair(group, others);
  };
  std::shared_ptr<Connection> going;
  std::pair<int, size_t> lowest;
  for (const auto& connection : order_) {
    const Place& place = places_.at(connection.get());
    if (place.kept || (peer != nullptr && connection->peer() != *peer)) continue;
    const auto mine = rank(*connection, place.state);
    if (going && lowest <= mine) continue;
    going = connection;
    lowest = mine;
  }
  if (!going) return false;
  going->finish();  // removes it from here
  return true;
}

void Places::add(std::shared_ptr<Connection> connection) {
  const Connection* const key = connection.get();
  for (Share* share : {&all_, &peers_[key->peer()]}) {
    ++share->held;
    ++share->of(State::kNew);
  }
  places_[key].at = order_.insert(order_.end(), std::move(connection));
}

void Places::remove(const Connection& connection) {
  const auto place = places_.find(&connection);
  if (place == places_.end()) return;
  release(connection);
  const auto peer = peers_.find(connection.peer());
  for (Share* share : {&all_, &peer->second}) {
    --share->held;
    --share->of(place->second.state);
  }
  if (peer->second.held == 0) peers_.erase(peer);
  const Order::iterator at = place->second.at;
  places_.erase(place);
  order_.erase(at);  // last: it may hold the only reference
}

void Places::enter(const Connection& connection, State state) {
  const auto place = places_.find(&connection);
  if (place == places_.end() || (state == State::kIdle && place->second.state == State::kNew)) return;
  for (Share* share : {&all_, &peers_.at(connection.peer())}) {
    --share->of(place->second.state);
    ++share->of(state);
  }
  place->second.state = state;
  order_.splice(order_.end(), order_, place->second.at);
}

void Places::keep(const Connection& connection) {
  const auto place = places_.find(&connection);
  if (place == places_.end() || place->second.kept) return;
  Share& share = peers_.at(connection.peer());
  if (2 * (all_.kept + 1) > most_ || 2 * (share.kept + 1) > most_per_peer_) return;
  place->second.kept = true;
  ++share.kept;
  ++all_.kept;
}

void Places::release(const Connection& connection) {
  const auto place = places_.find(&connection);
  if (place == places_.end() || !place->second.kept) return;
  place->second.kept = false;
  --peers_.at(connection.peer()).kept;
  --all_.kept;
}

}  // namespace gpuledger::http
