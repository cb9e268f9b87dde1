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
  // allocations: sorted. processes: the ledger's, of the same batch.
  std::vector<AllocationAccount> advance(const SampleBatch& batch, const std::vector<Allocation>& allocations,
                                         const std::vector<ProcessAccount>& processes);

 private:
  // Since when it is there, or when somebody last worked on it. Sorted.
  std::vector<std::pair<Allocation, Nanoseconds>> last_work_;
};

}  // namespace gpuledger::attribute
