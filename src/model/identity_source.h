// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "model/identity.h"
#include "model/sample.h"

namespace gpuledger {

// Whose is it? Used by the sampler thread alone.
class IdentitySource {
 public:
  virtual ~IdentitySource() = default;

  // The same object as last time when nothing has changed, which is how a crowded node costs next to nothing.
  virtual std::shared_ptr<const IdentityMap> resolve(const SampleBatch& batch) = 0;

  // Between two batches: reads those who are new. The next batch that names one of them has its owner, though it may be
  // over by then.
  virtual void meet_early(const std::vector<Pid>& /*pids*/, Nanoseconds /*now*/) {}

  virtual std::vector<SourceHealth> health() const { return {}; }
};

}  // namespace gpuledger
