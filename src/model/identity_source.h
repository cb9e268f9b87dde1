// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "model/identity.h"
#include "model/sample.h"

namespace gpuledger {

// Finds owners. Used only by the sampler thread.
class IdentitySource {
 public:
  virtual ~IdentitySource() = default;

  // The same object as last time if nothing changed, so that many processes cost almost no time.
  virtual std::shared_ptr<const IdentityMap> resolve(const SampleBatch& batch) = 0;

  // Between two batches: reads new processes. The next batch then has their owners, even if they have exited by
  // then.
  virtual void meet_early(const std::vector<Pid>& /*pids*/, Nanoseconds /*now*/) {}

  virtual std::vector<SourceHealth> health() const { return {}; }
};

}  // namespace gpuledger
