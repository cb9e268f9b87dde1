// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app/bill/gpu_books.h"
#include "app/bill/server.h"
#include "app/bill/statement.h"

namespace gpuledger::app {

// Everything of a span that a server has: statements by any group are made of it without asking again.
struct BillBooks {
  struct Node {
    std::string matchers;
    int64_t last_ms = 0;
    int64_t present_ms = 0;                // the end of the last step in which it was scraped and then gone
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
    friend auto operator<=>(const AllocationKey&, const AllocationKey&) = default;
  };
  BillSpan span;
  std::map<BillNode, Node> nodes;
  std::map<AllocationKey, Allocation> allocations;
  BillFacts facts;
  std::vector<BillGap> gaps;
  std::vector<std::string> remarks;
  bool has_co2e = false;
};

struct BillQuery {
  BillSpan span;
  std::chrono::seconds step{3600};
  std::string match;                         // matchers for all series; empty: all
  std::optional<double> co2e_grams_per_kwh;  // at most one of the two
  std::string co2e_series;
  BillAsk ask_co2e = {};  // for the series, whose replicas the server must deduplicate; empty: as all else
};

// How many of the times were asked for.
using BillProgress = std::function<void(size_t done, size_t all)>;

// Asks for all counters at the span's begin, at every step and at its end, and for all scrapes of a node in a step in
// which it came, went or restarted.
Result<BillBooks> collect_books(const BillAsk& ask, const BillQuery& query, const BillProgress& progress = {});

}  // namespace gpuledger::app
