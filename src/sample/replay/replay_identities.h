// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "model/identity_source.h"
#include "sample/replay/trace.h"

namespace gpuledger::replay {

// Identities of a recording's pids: it has no /proc, so the times at which they were seen are used. Works like the live
// resolver: an exited process has no entry, unless it was in no batch before. A process without a line of its name
// belongs to the host.
class ReplayIdentities final : public IdentitySource {
 public:
  explicit ReplayIdentities(const Trace& trace);

  std::shared_ptr<const IdentityMap> resolve(const SampleBatch& batch) override;

 private:
  struct Life {
    Nanoseconds first_seen{0};
    Nanoseconds last_listed = Nanoseconds::min();  // never: only in a utilization sample
    bool known = false;                            // ran in an earlier batch
    std::vector<Trace::Process> called;            // by time
  };
  static ProcessIdentity identity_of(Pid pid, const Life& life, Nanoseconds now);

  std::map<Pid, Life> lives_;
};

}  // namespace gpuledger::replay
