// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/bill/collect.h"

namespace gpuledger::app {

// Which line an owner's energy on one GPU belongs to.
struct BillPlace {
  LineKind kind = LineKind::kOwner;
  std::string name;
  BillFacts::Labels properties;
};

// `by` has words of --by. An owner without one of them has no group.
BillPlace place_of(const BillFacts& facts, const BillNode& node, const std::string& gpu, const BillFacts::Owner& owner,
                   const std::vector<std::string>& by);

// Whether any owner has the property; a misspelt one would give a bill with one line.
bool anybody_has(const BillBooks& books, const std::string& by);
// The label in gpu_ledger_pod_info of "label:team". Empty: it is not one.
std::string pod_label(const std::string& by);

}  // namespace gpuledger::app
