// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/name.h"
#include "model/sample.h"

namespace gpuledger {

// A GPU, or a part of one, that Kubernetes allocated to a container, or Slurm to a job. It says nothing about use,
// which is in the ledger.
struct Allocation {
  GpuUuid gpu;
  uint32_t gpu_index = 0;
  Name mig_uuid;  // empty: the whole GPU, or a replica of it
  Name name_space;
  Name pod;
  Name container;
  Name resource;                    // "nvidia.com/gpu"
  std::optional<uint32_t> replica;  // time-slicing and MPS; the number is not a share
  Name pod_uid;                     // empty: not known; the kubelet tells only names, which a later pod may have again
  Name job = {};                    // of Slurm; then all of the above but the GPU is empty
  friend auto operator<=>(const Allocation&, const Allocation&) = default;
};

}  // namespace gpuledger
