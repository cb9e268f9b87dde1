// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "identity/allocation_source.h"
#include "identity/container_source.h"
#include "identity/pod_source.h"
#include "identity/slurm_jobs.h"

namespace gpuledger::identity {

// All sources of names on this node. Any may be missing.
struct NodeDirectory {
  std::unique_ptr<PodSource> pods;
  std::unique_ptr<AllocationSource> allocations;
  std::vector<std::unique_ptr<ContainerSource>> containers;
  SlurmJobs slurm_jobs;
};

}  // namespace gpuledger::identity
