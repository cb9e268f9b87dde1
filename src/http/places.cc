// SPDX-License-Identifier: Apache-2.0
#include "http/places.h"

#include <algorithm>
#include <utility>

namespace gpuledger::http {

bool Places::make_room(const std::string& peer) {
  const auto share = peers_.find(peer);
  if (share != peers_.end() && share->second.held >= most_per_peer_ && !end_first(&peer)) return false;
  return order_.size() < most_ || end_first(nullptr);
}

bool Places::end_longest_silent() {
  return end_first(nullptr);
}

bool Places::end_first(const std::string* peer) {
  const auto may_go = [&](const auto& connection) {
    return !places_.at(connection.get()).kept && (peer == nullptr || connection->peer() == *peer);
  };
  const auto found = std::find_if(order_.begin(), order_.end(), may_go);
  if (found == order_.end()) return false;
  const std::shared_ptr<Connection> going = *found;  // finish() removes it from here
  going->finish();
  return true;
}

void Places::add(std::shared_ptr<Connection> connection) {
  const Connection* const key = connection.get();
  ++peers_[key->peer()].held;
  places_[key].at = order_.insert(order_.end(), std::move(connection));
}

void Places::remove(const Connection& connection) {
  const auto place = places_.find(&connection);
  if (place == places_.end()) return;
  release(connection);
  const auto share = peers_.find(connection.peer());
  if (--share->second.held == 0) peers_.erase(share);
  const Order::iterator at = place->second.at;
  places_.erase(place);
  order_.erase(at);  // last: it may hold the only reference
}

void Places::renew(const Connection& connection) {
  const auto place = places_.find(&connection);
  if (place != places_.end()) order_.splice(order_.end(), order_, place->second.at);
}

void Places::keep(const Connection& connection) {
  const auto place = places_.find(&connection);
  if (place == places_.end() || place->second.kept) return;
  Share& share = peers_[connection.peer()];
  if (2 * (kept_ + 1) > most_ || 2 * (share.kept + 1) > most_per_peer_) return;
  place->second.kept = true;
  ++share.kept;
  ++kept_;
}

void Places::release(const Connection& connection) {
  const auto place = places_.find(&connection);
  if (place == places_.end() || !place->second.kept) return;
  place->second.kept = false;
  --peers_[connection.peer()].kept;
  --kept_;
}

}  // namespace gpuledger::http
