#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/sample.h"

namespace gpuledger {

// A GPU, or a part of one, that Kubernetes gave to a container. Being given is not using: who works is the
// ledger's business.
struct Allocation {
  GpuUuid gpu;
  uint32_t gpu_index = 0;
  std::string mig_uuid;  // empty: the whole GPU, or a replica of it
  std::string name_space;
  std::string pod;
  std::string container;
  std::string resource;             // "nvidia.com/gpu"
  std::optional<uint32_t> replica;  // time-slicing and MPS; the number says nothing about a share
  friend auto operator<=>(const Allocation&, const Allocation&) = default;
};

}  // namespace gpuledger
