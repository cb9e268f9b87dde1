// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "http/connection.h"

namespace gpuledger::http {

// The memory of answers being sent. Each snapshot has its own text, so slow clients together could hold many snapshots
// in memory. One thread.
class SendBudget {
 public:
  explicit SendBudget(size_t bytes) : most_(bytes) {}

  // This connection begins to send these bytes, which many may share. If the budget is exceeded, the slowest others are
  // closed one by one. A single answer may be larger than the budget.
  void begin(Connection& connection, std::shared_ptr<const std::string> body, Nanoseconds now);
  void sent(const Connection& connection, size_t bytes);
  void end(const Connection& connection);

  size_t held() const { return held_; }

 private:
  struct Sending {
    Connection* connection = nullptr;
    std::shared_ptr<const std::string> body;
    Nanoseconds began{0};
    size_t sent = 0;
  };

  Connection* slowest_but(const std::string* body, Nanoseconds now) const;

  const size_t most_;
  size_t held_ = 0;
  std::unordered_map<const Connection*, Sending> sending_;
  std::map<const std::string*, size_t> readers_;  // per body
};

}  // namespace gpuledger::http
