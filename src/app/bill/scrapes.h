// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/bill/bill_query.h"
#include "app/bill/reading.h"

namespace gpuledger::app {

// Prometheus answers with a sample of up to five minutes before.
inline constexpr std::chrono::seconds kLookback{300};

// Asks for what exporters said at a time or in a span. Each reading balances, or there is an error.
class BillScrapes {
 public:
  BillScrapes(const BillAsk& ask, const BillQuery& query, BillFacts& facts) : ask_(ask), query_(query), facts_(facts) {}

  // Of each node the last one before `at`.
  Result<std::map<BillNode, NodeReading>> last(std::chrono::sys_seconds at);
  // Every one of a node after `from`, up to `to`, in milliseconds, oldest first.
  Result<std::vector<NodeReading>> between(const BillNode& name, const std::string& matchers, int64_t from, int64_t to);

 private:
  Status make_exact(NodeReading& reading, std::chrono::sys_seconds at);

  const BillAsk& ask_;
  const BillQuery& query_;
  BillFacts& facts_;
};

}  // namespace gpuledger::app
