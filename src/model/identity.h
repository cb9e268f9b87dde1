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

// What the site's prolog wrote of a Slurm job. Not part of the owner, because it may come after the job's first
// process.
struct JobFacts {
  Name account;
  Name partition;
  std::optional<uint32_t> gpus;   // given to the job on this node
  std::optional<double> started;  // on this node, since 1970
  bool restarted = false;         // requeued under the same number: `started` is of the last run only
  bool empty() const { return *this == JobFacts{}; }
  friend bool operator==(const JobFacts&, const JobFacts&) = default;
};

// A job that holds GPUs of this node, and whose it is.
struct SlurmHolder {
  JobFacts facts;
  Name uid;
  Name user_name;
  friend bool operator==(const SlurmHolder&, const SlurmHolder&) = default;
};

struct ProcessIdentity {
  ProcKey key;
  Name name;  // cleaned and bounded; "unknown" if the process exited before it could be read
  std::optional<double> start_time_seconds;  // since 1970
  Name container_id;                         // for any owner
  // The real uid, as /proc shows it, and its name in the host's passwd. Empty: not known.
  Name uid;
  Name user_name;
  Owner owner;
  JobFacts job;                 // of a Slurm job
  bool owner_inferred = false;  // from the allocation of the GPU; the process could not be read
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

// GPUs, MIG instances or replicas that a container's spec asks for.
struct GpuRequest {
  std::string container;
  std::string resource;  // "nvidia.com/gpu"
  uint64_t count = 0;
  friend auto operator<=>(const GpuRequest&, const GpuRequest&) = default;
};

// A pod that uses or was given a GPU.
struct PodFacts {
  std::string name_space;
  std::string pod;
  std::string pod_uid;
  std::string name_source;                    // where its name is from: "apiserver", "pod-resources"
  std::map<std::string, std::string> labels;  // of --pod-labels
  std::vector<GpuRequest> requests = {};      // sorted; empty: none, or its source does not tell
  friend auto operator<=>(const PodFacts&, const PodFacts&) = default;
};

// For every pid of a batch. A pid that no longer runs has no entry unless it was never seen before
// (then key.start_ticks is 0).
struct IdentityMap {
  std::map<Pid, ProcessIdentity> by_pid;
  // A known process has exited or was replaced: the driver's last lists are out of date.
  bool rescan_wanted = false;
  size_t without_owner = 0;                   // processes in a container or pod cgroup without a name
  std::vector<Allocation> allocations;        // by Kubernetes; sorted
  std::vector<Allocation> slurm_allocations;  // by Slurm; sorted
  std::map<std::string, SlurmHolder, std::less<>> slurm_holders;  // by job
  std::optional<uint64_t> allocatable;  // GPUs, instances and replicas for pods; empty: the kubelet cannot tell
  std::vector<PodFacts> pods;           // sorted
};

}  // namespace gpuledger
