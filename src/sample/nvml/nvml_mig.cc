// SPDX-License-Identifier: Apache-2.0
#include "sample/nvml/nvml_mig.h"

#include <algorithm>
#include <cmath>

namespace gpuledger::nvml {

namespace {

constexpr uint64_t kMiB = 1ull << 20;
constexpr uint64_t kGiB = 1ull << 30;
constexpr unsigned kMostInstances = 64;  // the hardware has at most 8; limits a faulty driver

// The profile's gigabytes are nominal: eighths of the GPU's rounded memory, not the slice's real size.
uint64_t profile_gigabytes(uint64_t slice_mib, std::optional<Bytes> gpu_memory) {
  if (!gpu_memory || gpu_memory->count == 0) return (slice_mib + 1023) / 1024;
  const double part = static_cast<double>(slice_mib * kMiB) / static_cast<double>(gpu_memory->count);
  const double eighths = std::min(8.0, std::ceil(part * 8));
  const uint64_t whole = (gpu_memory->count + kGiB - 1) / kGiB;
  return static_cast<uint64_t>(std::llround(eighths / 8 * static_cast<double>(whole)));
}

std::optional<MigDevice> read_mig_device(Session& session, Device handle, std::optional<Bytes> gpu_memory) {
  MigDevice mig;
  mig.handle = handle;
  char uuid[kUuidBufferSize] = {};
  for (Return result :
       {session.call(session.fn.nvmlDeviceGetUUID, handle, uuid, kUuidBufferSize - 1),
        session.call(session.fn.nvmlDeviceGetGpuInstanceId, handle, &mig.instance.id.gpu_instance),
        session.call(session.fn.nvmlDeviceGetComputeInstanceId, handle, &mig.instance.id.compute_instance)}) {
    if (result == kSuccess) continue;
    session.call.count_failure(result);
    return std::nullopt;
  }
  mig.instance.uuid = uuid;

  char name[kNameBufferSize] = {};
  if (session.call(session.fn.nvmlDeviceGetName, handle, name, kNameBufferSize - 1) != kSuccess) name[0] = '\0';
  DeviceAttributes attributes{};
  const bool described = session.call(session.fn.nvmlDeviceGetAttributes_v2, handle, &attributes) == kSuccess;
  if (described) {
    mig.instance.compute_slices = attributes.computeInstanceSliceCount;
    mig.instance.memory_total = Bytes{attributes.memorySizeMB * kMiB};
  }
  mig.instance.profile = mig_profile(name, described ? std::optional(attributes) : std::nullopt, gpu_memory);
  Memory memory{};
  if (session.call(session.fn.nvmlDeviceGetMemoryInfo, handle, &memory) == kSuccess) {
    mig.instance.memory_total = Bytes{memory.total};
    mig.instance.memory_used = Bytes{memory.used};
  }
  return mig;
}

}  // namespace

std::string mig_profile(const std::string& name, const std::optional<DeviceAttributes>& attributes,
                        std::optional<Bytes> gpu_memory) {
  constexpr std::string_view kMark = " MIG ";
  if (const size_t at = name.rfind(kMark); at != std::string::npos) return name.substr(at + kMark.size());
  if (!attributes || attributes->gpuInstanceSliceCount == 0) return "";
  std::string profile;
  if (attributes->computeInstanceSliceCount != attributes->gpuInstanceSliceCount) {
    profile = std::to_string(attributes->computeInstanceSliceCount) + "c.";
  }
  return profile + std::to_string(attributes->gpuInstanceSliceCount) + "g." +
         std::to_string(profile_gigabytes(attributes->memorySizeMB, gpu_memory)) + "gb";
}

std::vector<MigDevice> read_mig_devices(Session& session, Device gpu, std::optional<Bytes> gpu_memory) {
  std::vector<MigDevice> devices;
  unsigned count = 0;
  if (const Return result = session.call(session.fn.nvmlDeviceGetMaxMigDeviceCount, gpu, &count); result != kSuccess) {
    if (!means_unsupported(result)) session.call.count_failure(result);
    return devices;
  }
  for (unsigned i = 0; i < std::min(count, kMostInstances); ++i) {
    Device handle = nullptr;
    const Return result = session.call(session.fn.nvmlDeviceGetMigDeviceHandleByIndex, gpu, i, &handle);
    if (result == kNotFound) continue;  // holes are normal: the count is the maximum, not the number
    if (result != kSuccess) {
      session.call.count_failure(result);
      continue;
    }
    if (std::optional<MigDevice> mig = read_mig_device(session, handle, gpu_memory)) devices.push_back(std::move(*mig));
  }
  std::sort(devices.begin(), devices.end(),
            [](const MigDevice& a, const MigDevice& b) { return a.instance.id < b.instance.id; });
  return devices;
}

}  // namespace gpuledger::nvml
