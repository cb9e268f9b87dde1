// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <vector>

#include "expose/view.h"

namespace gpuledger::expose {

// The accounts of the JSON: all of the ledger, or if they are more than --max-series, running processes first, then
// those with the most energy. Processes, owners and allocations get equal room, as in the text. Joules of owners that
// are left out are added to the closed accounts. Has pointers into the ledger.
struct JsonAccounts {
  JsonAccounts(const Ledger& ledger, size_t most);

  std::vector<const ProcessAccount*> processes;
  std::vector<const OwnerAccount*> owners;  // as they are shown
  std::vector<const AllocationAccount*> allocations;
  std::vector<ClosedAccount> closed;
  size_t processes_left_out = 0;
  size_t owners_left_out = 0;
  size_t allocations_left_out = 0;
  std::set<Name> jobs_left_out;  // in part or as a whole

 private:
  void close(const std::vector<const OwnerAccount*>& left_out);
};

}  // namespace gpuledger::expose
