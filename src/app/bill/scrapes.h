// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "app/bill/bill_query.h"
#include "app/bill/reading.h"

namespace gpuledger::app {

// Prometheus answers with a sample of up to five minutes before.
inline constexpr std::chrono::seconds kLookback{300};

// Asks for what exporters said at a time or in a span. Each reading balances. A scrape that does not is passed over: a
// server to which series are sent one by one may have half of the newest. If none balances, there is an error.
class BillScrapes {
 public:
  BillScrapes(const BillAsk& ask, const BillQuery& query, BillFacts& facts)
      : ask_(ask), query_(query), facts_(facts), pieces_{reading_names()}, node_pieces_{node_names()} {}

  // What pods and jobs were at any time of a step: at its end they may be gone.
  Status read_infos(const BillSpan& step);
  // Of each node the last one before `at`.
  Result<std::map<BillNode, NodeReading>> last(std::chrono::sys_seconds at);
  // Every one of a node after `from`, up to `to`, in milliseconds, oldest first.
  Result<std::vector<NodeReading>> between(const BillNode& name, const std::string& matchers, int64_t from, int64_t to);
  // A line for each node of which scrapes were passed over.
  std::vector<std::string> remarks() const;

 private:
  using Pieces = std::vector<std::vector<std::string>>;  // names that are asked for at once; smaller after a refusal
  Result<std::vector<BillSeries>> ask_for_all(Pieces& pieces, const std::string& matchers, const std::string& range,
                                              std::chrono::sys_seconds at);
  Status make_exact(NodeReading& reading, std::chrono::sys_seconds at);

  const BillAsk& ask_;
  const BillQuery& query_;
  BillFacts& facts_;
  Pieces pieces_;       // of all nodes at a time
  Pieces node_pieces_;  // of every scrape of a node
  std::map<BillNode, std::set<int64_t>> in_part_;
};

}  // namespace gpuledger::app
