// SPDX-License-Identifier: Apache-2.0
#include "http/send_budget.h"

#include <chrono>
#include <tuple>
#include <utility>

namespace gpuledger::http {
namespace {

// No client counts as slow before this.
constexpr Nanoseconds kFirstJudged = std::chrono::seconds(1);

}  // namespace

void SendBudget::begin(Connection& connection, std::shared_ptr<const std::string> body, Nanoseconds now) {
  end(connection);
  const std::string* const key = body.get();
  if (++readers_[key] == 1) held_ += key->capacity();
  sending_[&connection] = {&connection, std::move(body), now, 0};
  while (held_ > most_) {
    // Same bytes: closing would free nothing.
    Connection* const slowest = slowest_but(key, now);
    if (slowest == nullptr) return;
    end(*slowest);
    slowest->finish();
  }
}

void SendBudget::sent(const Connection& connection, size_t bytes) {
  const auto found = sending_.find(&connection);
  if (found != sending_.end()) found->second.sent += bytes;
}

void SendBudget::end(const Connection& connection) {
  const auto found = sending_.find(&connection);
  if (found == sending_.end()) return;
  const auto readers = readers_.find(found->second.body.get());
  if (--readers->second == 0) {
    held_ -= readers->first->capacity();
    readers_.erase(readers);
  }
  sending_.erase(found);
}

// By bytes per second; clients that just began come last, the oldest first.
Connection* SendBudget::slowest_but(const std::string* body, Nanoseconds now) const {
  const Sending* slowest = nullptr;
  const auto rank = [&](const Sending& sending) {
    const Nanoseconds age = now - sending.began;
    const bool young = age < kFirstJudged;
    const double speed = young ? 0 : static_cast<double>(sending.sent) / static_cast<double>(age.count());
    return std::tuple(young, speed, sending.began);
  };
  for (const auto& [connection, sending] : sending_) {
    if (sending.body.get() == body) continue;
    if (slowest == nullptr || rank(sending) < rank(*slowest)) slowest = &sending;
  }
  return slowest == nullptr ? nullptr : slowest->connection;
}

}  // namespace gpuledger::http
