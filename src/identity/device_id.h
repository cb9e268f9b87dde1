// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuledger::identity {

// Position of a MIG instance, as NVIDIA's DRA driver names it. Not the instance's id: ids are reused.
struct MigPlacement {
  std::string profile;  // "2g47gb"; empty in the older form, which has the size instead
  uint32_t profile_id = 0;
  uint32_t start = 0;
  std::optional<uint32_t> size;
};

// The GPU behind a device id of the kubelet's pod-resources, a DRA device name or a CDI name.
struct DeviceRef {
  enum class Kind {
    kUnknown,  // another vendor's, or an undocumented form
    kInvalid,  // empty
    kUuid,     // uuid, with gpu_instance and compute_instance for a MIG slice (drivers before R470)
    kMigUuid,  // uuid of a MIG device: NVML knows its GPU
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
  std::optional<uint32_t> replica;  // of a shared GPU; not a measure of the share
  bool hami = false;                // HAMi may have given another GPU; its annotation says which
};

// Pure and total.
DeviceRef parse_device_id(std::string_view id);

// Resources whose device ids are NVIDIA GPUs: nvidia.com/gpu, nvidia.com/mig-1g.5gb, either with ".shared".
bool is_gpu_resource(std::string_view resource_name);
bool is_gpu_dra_driver(std::string_view driver_name);

// The annotation "hami.io/vgpu-devices-allocated": the GPU UUIDs of each container of the pod, in the order of the
// spec. Other entries are left out.
std::vector<std::vector<std::string>> parse_hami_allocation(std::string_view annotation);

}  // namespace gpuledger::identity
