// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "model/identity.h"
#include "model/ledger.h"
#include "model/sample.h"

namespace gpuledger::attribute {

// How long each GPU that was given away has stood unused by the one it was given to. Looks at every process and every
// allocation once: a node can have thousands of both.
class AllocationTracker {
 public:
  // allocations: sorted. processes: the ledger's, of the same batch. idle_interval: nobody is called idle before two of
  // them are over, as with processes.
  std::vector<AllocationAccount> advance(const SampleBatch& batch, const std::vector<Allocation>& allocations,
                                         const std::vector<ProcessAccount>& processes,
                                         Nanoseconds idle_interval = Nanoseconds(0));

 private:
  struct Holding {
    Allocation allocation;
    Nanoseconds last_work{0};  // or since when somebody could have been seen
    bool worked = false;
  };
  std::vector<Holding> holdings_;  // sorted
};

}  // namespace gpuledger::attribute
