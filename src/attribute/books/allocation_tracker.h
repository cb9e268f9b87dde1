#pragma once

#include <map>
#include <vector>

#include "model/identity.h"
#include "model/ledger.h"
#include "model/sample.h"

namespace gpuledger::attribute {

// How long each GPU that was given away has stood unused by the one it was given to.
class AllocationTracker {
 public:
  // processes: the ledger's, of the same batch.
  std::vector<AllocationAccount> advance(const SampleBatch& batch, const std::vector<Allocation>& allocations,
                                         const std::vector<ProcessAccount>& processes);

 private:
  // Since when it is there, or when somebody last worked on it.
  std::map<Allocation, Nanoseconds> last_work_;
};

}  // namespace gpuledger::attribute
