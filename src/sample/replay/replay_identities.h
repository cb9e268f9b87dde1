// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "model/identity_source.h"
#include "sample/replay/trace.h"

namespace gpuledger::replay {

// Who the pids of a recording are: it has no /proc, so the times at which they were seen stand for it. Behaves as the
// live resolver: who has left has no entry, unless it was never in a batch before. All belong to the host.
class ReplayIdentities final : public IdentitySource {
 public:
  explicit ReplayIdentities(const Trace& trace);

  std::shared_ptr<const IdentityMap> resolve(const SampleBatch& batch) override;

 private:
  struct Life {
    Nanoseconds first_seen{0};
    Nanoseconds last_listed = Nanoseconds::min();  // never: only a utilisation sample names it
    bool known = false;                            // was alive in an earlier batch
  };
  static ProcessIdentity identity_of(Pid pid, const Life& life);

  std::map<Pid, Life> lives_;
};

}  // namespace gpuledger::replay
