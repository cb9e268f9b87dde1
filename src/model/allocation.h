// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/name.h"
#include "model/sample.h"

namespace gpuledger {

// A GPU, or a part of one, that Kubernetes gave to a container. Being given is not using: who works is the
// ledger's business.
struct Allocation {
  GpuUuid gpu;
  uint32_t gpu_index = 0;
  Name mig_uuid;  // empty: the whole GPU, or a replica of it
  Name name_space;
  Name pod;
  Name container;
  Name resource;                    // "nvidia.com/gpu"
  std::optional<uint32_t> replica;  // time-slicing and MPS; the number says nothing about a share
  friend auto operator<=>(const Allocation&, const Allocation&) = default;
};

}  // namespace gpuledger
