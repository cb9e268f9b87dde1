// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/name.h"
#include "model/allocation.h"
#include "model/owner.h"

namespace gpuledger {

struct ProcessIdentity {
  ProcKey key;
  Name name;  // cleaned and bounded; "unknown" when the process was gone before it could be read
  std::optional<double> start_time_seconds;  // since 1970
  Name container_id;                         // whatever the owner is
  Owner owner;
  bool owner_inferred = false;  // from who was given the GPU; nobody could read the process itself
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

// A pod that uses a GPU or was given one.
struct PodFacts {
  std::string name_space;
  std::string pod;
  std::string pod_uid;
  std::string name_source;                    // who told its name: "apiserver", "pod-resources"
  std::map<std::string, std::string> labels;  // those of --pod-labels
  friend auto operator<=>(const PodFacts&, const PodFacts&) = default;
};

// For every pid of a batch. A pid that no longer runs has no entry unless it was never seen before
// (then key.start_ticks is 0).
struct IdentityMap {
  std::map<Pid, ProcessIdentity> by_pid;
  // Known before and now gone or replaced: the lists the driver gave last are out of date.
  bool rescan_wanted = false;
  size_t without_owner = 0;             // in a container or pod cgroup, but no name was found for it
  std::vector<Allocation> allocations;  // sorted
  std::optional<uint64_t> allocatable;  // GPUs, instances and replicas on offer; empty where the kubelet cannot say
  std::vector<PodFacts> pods;           // sorted
};

}  // namespace gpuledger
