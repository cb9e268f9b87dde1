// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "model/identity.h"
#include "model/ledger.h"
#include "model/sample.h"

namespace gpuledger::attribute {

// For how long each allocated GPU has not been used by its container or job. Time is linear in processes and
// allocations: a node can have thousands of both.
class AllocationTracker {
 public:
  // allocations: sorted. processes: the ledger's, of the same batch. idle_interval: an allocation is not idle before
  // two of them, as with processes.
  std::vector<AllocationAccount> advance(const SampleBatch& batch, const std::vector<Allocation>& allocations,
                                         const std::vector<ProcessAccount>& processes,
                                         Nanoseconds idle_interval = Nanoseconds(0));

 private:
  struct Holding {
    Allocation allocation;
    Nanoseconds last_work{0};  // or the start of observation
    bool worked = false;
  };
  std::vector<Holding> holdings_;  // sorted
};

}  // namespace gpuledger::attribute
