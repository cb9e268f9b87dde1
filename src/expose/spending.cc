// SPDX-License-Identifier: Apache-2.0
#include "expose/spending.h"

namespace gpuledger::expose {

Spending::Spending(const Ledger& ledger) {
  for (const OwnerAccount& account : ledger.owners) {
    const Owner& owner = account.owner;
    if (owner.kind == OwnerKind::kPod) by_name_[{owner.name_space, owner.pod}] += account.booked.total();
    if (!owner.job.empty()) by_name_[{"", owner.job}] += account.booked.total();
  }
}

Energy Spending::of(const AllocationAccount* account) const {
  const Allocation& given = account->allocation;
  return given.job.empty() ? of_name(given.name_space, given.pod) : of_name("", given.job);
}

Energy Spending::of_name(std::string_view name_space, std::string_view name) const {
  const auto found = by_name_.find({name_space, name});
  return found == by_name_.end() ? Energy() : found->second;
}

}  // namespace gpuledger::expose
