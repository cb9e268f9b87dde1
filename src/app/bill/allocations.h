// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "app/bill/bill_books.h"
#include "app/bill/bill_query.h"

namespace gpuledger::app {

// The hours that pods and jobs held GPUs, and how much of them without use. They are counted from one sample a minute
// (a look). If a node has no sample at some minute (a hole), every sample is read: a holder of a GPU before and after
// the hole is charged for it; other holders are named.
class BillAllocations {
 public:
  BillAllocations(const BillAsk& ask, const BillQuery& query, BillBooks& books)
      : ask_(ask), query_(query), books_(books) {}

  // Steps follow each other.
  Status read(const BillSpan& step);
  // After the last one.
  void finish();

 private:
  // An allocation, and which part of its GPU: a MIG instance, a time slice, the container.
  using Held = std::pair<BillBooks::AllocationKey, std::string>;
  struct Time {  // in seconds
    double held = 0;
    double paid = 0;  // the same, or the part of it where a GPU is shared
  };
  struct Node {
    bool known = false;                         // what was held when it was last seen
    std::set<Held> held;                        // that
    int64_t seen_ms = 0;                        // and when
    int64_t hole_seconds = 0;                   // since, without what the looks counted
    int64_t back_ms = 0;                        // when it was seen again; 0: it was not
    std::map<Held, int64_t> seconds_back = {};  // what was held since then, while not all is back
  };
  struct Looks {
    std::string range;
    int64_t length = 0;   // of the step, in seconds
    int64_t seconds = 0;  // between two looks
  };
  using Counts = std::map<Held, std::vector<double>>;  // by each copy of a series

  Result<double> count_looks(const BillSpan& step, const Looks& looks);
  Result<Counts> count(const std::string& query, const BillSpan& step, const Looks& looks);
  Held held_by(const BillSeries& series);
  Status read_unused(const BillSpan& step, const Looks& looks);
  Status look_closely(const BillNode& name, Node& node, const BillSpan& step, const Looks& looks);
  static bool settles(Node& node, const std::set<Held>& now, int64_t at_ms);
  void pass_hole(const BillNode& name, const Node& node, const std::set<Held>& now, int64_t at_ms);
  void name_unknown(const BillNode& name, int64_t from, int64_t to);
  using Shared = std::tuple<BillNode, std::string, std::string>;
  using Slices = std::map<Shared, size_t>;  // empty: everybody pays a whole hour
  Slices count_slices(const std::set<Held>& all) const;
  static Shared shared_by(const Held& held);
  // slices: of those who held GPUs at that time
  void add_time(const Held& held, double seconds, const Slices& slices);
  void book(BillBooks::AllocationKey key, const std::map<size_t, Time>& periods);

  const BillAsk& ask_;
  const BillQuery& query_;
  BillBooks& books_;
  std::map<Held, std::map<size_t, Time>> times_;                 // by period of prices
  std::map<BillBooks::AllocationKey, double> held_, unused_;     // seconds
  std::map<BillNode, Node> nodes_;                               // those with allocations
  std::map<BillNode, std::string> matchers_;                     // that select their series
  std::map<std::pair<int64_t, int64_t>, double> looks_by_form_;  // of a step: its length, and where in a minute it ends
};

}  // namespace gpuledger::app
