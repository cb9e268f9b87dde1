// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/bill/allocation_filter.h"
#include "app/bill/collect.h"

namespace gpuledger::app {

// Words of --by, and whose energy they group.
struct BillGroups : std::vector<std::string> {
  using vector::vector;
  BillGroups(std::vector<std::string> words) : vector(std::move(words)) {}
  std::shared_ptr<const AllocationFilter> filter;  // null: everybody's
};

// Which line an owner's energy on one GPU belongs to.
struct BillPlace {
  LineKind kind = LineKind::kOwner;
  std::string name;
  BillFacts::Labels properties;
};

// An owner without one of the words has no group. What the filter leaves out is kLeftOut, still of somebody or nobody.
BillPlace place_of(const BillFacts& facts, const BillNode& node, const std::string& gpu, const BillFacts::Owner& owner,
                   const BillGroups& by);

// Whether any owner has the property; a misspelt one would give a bill with one line.
bool anybody_has(const BillBooks& books, const std::string& by);
// The label in gpu_ledger_pod_info of "label:team". Empty: it is not one.
std::string pod_label(const std::string& by);

}  // namespace gpuledger::app
