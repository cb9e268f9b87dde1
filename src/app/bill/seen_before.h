// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include "app/bill/bill_books.h"
#include "app/bill/bill_query.h"

namespace gpuledger::app {

// The nodes that were scraped in the day before the span, and their books. Only one day: nodes switched off earlier are
// not reported.
class SeenBefore {
 public:
  Status read(const BillAsk& ask, const BillQuery& query);

  bool has(const BillNode& node) const { return gpus_.contains(node); }
  // The GPU was there, or at a node that is not there any more, as one has another name after its address changed.
  bool has_gpu(const BillNode& node, const std::string& uuid, const BillBooks& books) const;
  // Whether the GPU had these books then. An exporter's clock may have been ahead when they were opened.
  bool has_books(const BillNode& node, const std::string& uuid, int64_t opened_ms) const;
  // Nodes and GPUs that never appear in the span. A GPU may do so elsewhere.
  void name_the_lost(BillBooks& books) const;

 private:
  std::map<BillNode, std::map<std::string, std::set<int64_t>>> gpus_;  // by UUID, when their books were opened
};

}  // namespace gpuledger::app
