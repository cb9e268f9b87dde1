// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/bill/gpu_books.h"
#include "app/bill/statement.h"

namespace gpuledger::app {

// Everything of a span that a server has: statements by any group are made of it without asking again.
struct BillBooks {
  struct Node {
    std::string matchers;
    int64_t first_ms = 0;  // its first scrape of the span
    int64_t last_ms = 0;
    std::map<std::string, GpuBooks> gpus;  // by UUID
  };
  struct Allocation {
    double hours = 0;
    double unused_hours = 0;
    bool idleness_known = false;
  };
  struct AllocationKey {
    BillNode node;
    std::string owner;
    std::string gpu;
    size_t period = 0;
    friend auto operator<=>(const AllocationKey&, const AllocationKey&) = default;
  };
  BillSpan span;
  std::map<BillNode, Node> nodes;
  std::map<AllocationKey, Allocation> allocations;
  BillFacts facts;
  std::vector<BillGap> gaps;
  std::vector<std::string> remarks;
  bool has_co2e = false;
  std::vector<std::chrono::sys_seconds> price_changes;
  size_t period = 0;  // of the step that is read
};

// Periods of prices are numbered. What a node used while nobody scraped it is in the period in which it is back.
inline size_t period_at(const BillBooks& books, std::chrono::sys_seconds time) {
  const auto& changes = books.price_changes;
  return static_cast<size_t>(std::upper_bound(changes.begin(), changes.end(), time) - changes.begin());
}
inline std::chrono::sys_seconds begin_of_period(const BillBooks& books, size_t period) {
  return period == 0 ? books.span.begin : books.price_changes[period - 1];
}

}  // namespace gpuledger::app
