// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuledger::identity {

// Where a MIG instance lies, as NVIDIA's DRA driver names it. Not the instance's id: those are reused.
struct MigPlacement {
  std::string profile;  // "2g47gb"; empty in the older form, which has the size instead
  uint32_t profile_id = 0;
  uint32_t start = 0;
  std::optional<uint32_t> size;
};

// Which GPU a device id of the kubelet's pod-resources, a DRA device name or a CDI name means.
struct DeviceRef {
  enum class Kind {
    kUnknown,  // another vendor's, or a form nobody documented
    kInvalid,  // empty
    kUuid,     // uuid, with gpu_instance and compute_instance if it is a MIG slice of it (drivers before R470)
    kMigUuid,  // uuid of a MIG device: NVML knows the GPU it is part of
    kMinor,    // number: /dev/nvidia<number>, not NVML's index
    kIndex,    // number: NVML's index
    kTegra,
    kAll,
  };
  Kind kind = Kind::kUnknown;
  std::string uuid;  // "GPU-..." or "MIG-..." as NVML prints it
  std::optional<uint32_t> number;
  std::optional<uint32_t> gpu_instance;
  std::optional<uint32_t> compute_instance;
  std::optional<uint32_t> mig_index;  // n-th MIG device of the GPU
  std::optional<MigPlacement> placement;
  std::optional<uint32_t> replica;  // of a shared GPU; says nothing of the share's size
  bool hami = false;                // HAMi may have given another GPU than this: its annotation says which
};

// Pure and total.
DeviceRef parse_device_id(std::string_view id);

// Resources whose device ids are NVIDIA GPUs: nvidia.com/gpu, nvidia.com/mig-1g.5gb, either with ".shared".
bool is_gpu_resource(std::string_view resource_name);
bool is_gpu_dra_driver(std::string_view driver_name);

// The annotation "hami.io/vgpu-devices-allocated": for each container of the pod, in the order of its spec, the UUIDs
// of its GPUs. What is no UUID is left out.
std::vector<std::vector<std::string>> parse_hami_allocation(std::string_view annotation);

}  // namespace gpuledger::identity
