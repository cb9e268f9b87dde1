// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include "app/bill/bill_books.h"
#include "app/bill/bill_query.h"

namespace gpuledger::app {

// The nodes that were scraped in the day before the span. Only one day: nodes switched off earlier are not reported.
class SeenBefore {
 public:
  Status read(const BillAsk& ask, const BillQuery& query);

  bool has(const BillNode& node) const { return gpus_.contains(node); }
  // Those that never appear in the span, unless their GPUs do elsewhere.
  void name_the_lost(BillBooks& books) const;

 private:
  std::map<BillNode, std::set<std::string>> gpus_;  // their UUIDs
};

}  // namespace gpuledger::app
