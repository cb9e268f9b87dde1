// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "mig_profile.h"
#include "node.h"

// GPU instances, the compute instances in them, and the profiles they are cut by.
using namespace gpuledger::sim;

namespace gpuledger::nvml {
namespace {

constexpr unsigned kComputeSlices[] = {1, 2, 3, 4, 7};  // by the profile's index, which is its id too

GpuInstanceProfileInfo info_of(const MigProfile& profile) {
  return {profile.id,       0, profile.slices,       profile.instances,    profile.sm_count, profile.copy_engines,
          profile.decoders, 0, profile.jpeg_engines, profile.optical_flow, profile.memory_mb};
}

Return find_profile(const GpuModel& model, unsigned index, MigProfile* out) {
  if (index >= kGpuInstanceProfiles) return kInvalidArgument;
  for (const MigProfile& profile : mig_profiles(model)) {
    if (profile.index != index) continue;
    *out = profile;
    return kSuccess;
  }
  return kNotSupported;
}

template <typename Versioned>
void fill_versioned(const MigProfile& profile, Versioned* out) {
  out->id = profile.id;
  out->sliceCount = profile.slices;
  out->instanceCount = profile.instances;
  out->multiprocessorCount = profile.sm_count;
  out->copyEngineCount = profile.copy_engines;
  out->decoderCount = profile.decoders;
  out->encoderCount = 0;
  out->jpegCount = profile.jpeg_engines;
  out->ofaCount = profile.optical_flow;
  out->memorySizeMB = profile.memory_mb;
  snprintf(out->name, sizeof out->name, "MIG %s", profile.name.c_str());
}

// The first existing compute instance of a GPU instance represents it.
const MigSpec* living(const GpuSpec& gpu, unsigned gpu_instance, Millis now) {
  for (const MigSpec& mig : gpu.instances) {
    if (mig.gpu_instance == gpu_instance && there(mig, now)) return &mig;
  }
  return nullptr;
}

// A call about a GPU instance; body(node, GPU, instance).
template <typename Body>
Return on_instance(const char* call, GpuInstance instance, Body body) {
  return on_driver(call, [&](Node& node) {
    const GpuInstanceHandle* handle = node.find(instance);
    if (!handle) return kInvalidArgument;
    const GpuSpec& gpu = node.scenario().gpus[handle->gpu];
    const MigSpec* mig = living(gpu, handle->id, node.now());
    return mig ? body(node, handle->gpu, *mig) : kInvalidArgument;
  });
}

Return compute_profile(const char* call, GpuInstance instance, unsigned index, unsigned engine_profile,
                       ComputeInstanceProfileInfo* out, std::string* name) {
  return on_instance(call, instance, [&](Node& node, unsigned gpu, const MigSpec& mig) {
    if (!out || index >= kComputeInstanceProfiles || engine_profile != 0) return kInvalidArgument;
    if (index >= std::size(kComputeSlices) || kComputeSlices[index] > mig.slices) return kNotSupported;
    const MigProfile profile = profile_of(node.scenario().gpus[gpu].model, mig);
    const unsigned slices = kComputeSlices[index];
    *out = {index,
            slices,
            mig.slices / slices,
            profile.sm_count * slices / mig.slices,
            profile.copy_engines,
            profile.decoders,
            0,
            profile.jpeg_engines,
            profile.optical_flow};
    *name = (slices == mig.slices ? "" : std::to_string(slices) + "c.") + mig.profile;
    return kSuccess;
  });
}

unsigned compute_profile_id(unsigned slices) {
  unsigned id = 0;
  for (unsigned i = 0; i < std::size(kComputeSlices); ++i) {
    if (kComputeSlices[i] <= slices) id = i;
  }
  return id;
}

Return compute_info(const char* call, ComputeInstance instance, ComputeInstanceInfo* info) {
  return on_driver(call, [&](Node& node) {
    const ComputeInstanceHandle* handle = node.find(instance);
    if (!handle || !info) return kInvalidArgument;
    const GpuSpec& spec = node.scenario().gpus[handle->gpu];
    unsigned start = 0;
    for (const MigSpec& mig : spec.instances) {
      if (mig.gpu_instance != handle->gpu_instance || !there(mig, node.now())) continue;
      const unsigned slices = compute_slices(spec, mig, node.now());
      if (mig.compute_instance == handle->id) {
        *info = {node.handle(handle->gpu),
                 node.instance_handle(handle->gpu, mig.gpu_instance),
                 handle->id,
                 compute_profile_id(slices),
                 {start, slices}};
        return kSuccess;
      }
      start += slices;
    }
    return kInvalidArgument;
  });
}

}  // namespace

extern "C" {

Return nvmlDeviceGetGpuInstanceProfileInfo(Device device, unsigned profile, GpuInstanceProfileInfo* info) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    MigProfile found;
    if (!info) return kInvalidArgument;
    const Return result = find_profile(gpu.spec().model, profile, &found);
    if (result == kSuccess) *info = info_of(found);
    return result;
  });
}

Return nvmlDeviceGetGpuInstanceProfileInfoV(Device device, unsigned profile, GpuInstanceProfileInfo_v2* info) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    MigProfile found;
    if (!info) return kInvalidArgument;
    const Return result = find_profile(gpu.spec().model, profile, &found);
    if (result != kSuccess) return result;
    if (info->version == kGpuInstanceProfileInfoVersion2) {
      fill_versioned(found, info);
      info->isP2pSupported = 0;
    } else if (info->version == kGpuInstanceProfileInfoVersion3) {
      auto* newer = reinterpret_cast<GpuInstanceProfileInfo_v3*>(info);
      fill_versioned(found, newer);
      newer->capabilities = 0;
    } else {
      return kInvalidArgument;
    }
    return kSuccess;
  });
}

Return nvmlDeviceGetGpuInstances(Device device, unsigned profile_id, GpuInstance* instances, unsigned* count) {
  return on_whole_gpu(__func__, device, [&](Node& node, Target& target) {
    if (!instances || !count) return kInvalidArgument;
    const GpuSpec& spec = target.gpu->spec();
    const std::vector<MigProfile> profiles = mig_profiles(spec.model);
    if (profiles.empty()) return kNotSupported;
    const auto same = [&](const MigProfile& profile) { return profile.id == profile_id; };
    if (std::none_of(profiles.begin(), profiles.end(), same)) return kInvalidArgument;
    if (geteuid() != 0) return kNoPermission;
    *count = 0;
    for (const MigSpec& mig : spec.instances) {
      const bool first = living(spec, mig.gpu_instance, node.now()) == &mig;
      const MigProfile profile = profile_of(spec.model, mig);
      // The client's buffer has room for as many as the profile allows; a scenario may have more.
      if (!first || !same(profile) || *count >= profile.instances) continue;
      instances[(*count)++] = node.instance_handle(target.index, mig.gpu_instance);
    }
    return kSuccess;
  });
}

Return nvmlDeviceGetGpuInstanceById(Device device, unsigned id, GpuInstance* instance) {
  return on_device(__func__, device, [&](Node& node, Target& target) {
    if (!instance || target.instance) return kInvalidArgument;
    if (!target.gpu->spec().mig) return kNotSupported;
    if (!living(target.gpu->spec(), id, node.now())) return kNotFound;
    *instance = node.instance_handle(target.index, id);
    return kSuccess;
  });
}

Return nvmlGpuInstanceGetInfo(GpuInstance instance, GpuInstanceInfo* info) {
  return on_instance(__func__, instance, [&](Node& node, unsigned gpu, const MigSpec& mig) {
    if (!info) return kInvalidArgument;
    const GpuSpec& spec = node.scenario().gpus[gpu];
    const MigProfile profile = profile_of(spec.model, mig);
    const auto position = static_cast<size_t>(&mig - spec.instances.data());
    *info = {node.handle(gpu), mig.gpu_instance, profile.id, {placements(spec)[position], profile.memory_slices}};
    return kSuccess;
  });
}

Return nvmlGpuInstanceGetComputeInstanceProfileInfo(GpuInstance instance, unsigned profile, unsigned engine_profile,
                                                    ComputeInstanceProfileInfo* info) {
  std::string name;
  return compute_profile(__func__, instance, profile, engine_profile, info, &name);
}

Return nvmlGpuInstanceGetComputeInstanceProfileInfoV(GpuInstance instance, unsigned profile, unsigned engine_profile,
                                                     ComputeInstanceProfileInfo_v2* info) {
  if (!info || info->version != kComputeInstanceProfileInfoVersion2) return kInvalidArgument;
  std::string name;
  const Return result = compute_profile(__func__, instance, profile, engine_profile, &info->info, &name);
  if (result == kSuccess) snprintf(info->name, sizeof info->name, "MIG %s", name.c_str());
  return result;
}

Return nvmlGpuInstanceGetComputeInstances(GpuInstance instance, unsigned profile_id, ComputeInstance* instances,
                                          unsigned* count) {
  return on_instance(__func__, instance, [&](Node& node, unsigned gpu, const MigSpec& mig) {
    if (!instances || !count || profile_id >= std::size(kComputeSlices)) return kInvalidArgument;
    const GpuSpec& spec = node.scenario().gpus[gpu];
    const unsigned slices = compute_slices(spec, mig, node.now());
    *count = 0;
    if (compute_profile_id(slices) != profile_id) return kSuccess;
    for (const MigSpec& other : spec.instances) {
      if (other.gpu_instance != mig.gpu_instance || !there(other, node.now())) continue;
      if (*count >= mig.slices / kComputeSlices[profile_id]) break;
      instances[(*count)++] = node.compute_handle(gpu, other.gpu_instance, other.compute_instance);
    }
    return kSuccess;
  });
}

Return nvmlGpuInstanceGetComputeInstanceById(GpuInstance instance, unsigned id, ComputeInstance* compute_instance) {
  return on_instance(__func__, instance, [&](Node& node, unsigned gpu, const MigSpec& mig) {
    if (!compute_instance) return kInvalidArgument;
    for (const MigSpec& other : node.scenario().gpus[gpu].instances) {
      if (other.gpu_instance != mig.gpu_instance || other.compute_instance != id || !there(other, node.now())) continue;
      *compute_instance = node.compute_handle(gpu, other.gpu_instance, id);
      return kSuccess;
    }
    return kNotFound;
  });
}

// The first version ends before the placement.
Return nvmlComputeInstanceGetInfo(ComputeInstance instance, ComputeInstanceInfo* info) {
  ComputeInstanceInfo whole{};
  const Return result = info ? compute_info(__func__, instance, &whole) : kInvalidArgument;
  if (result == kSuccess) std::memcpy(static_cast<void*>(info), &whole, offsetof(ComputeInstanceInfo, placement));
  return result;
}

Return nvmlComputeInstanceGetInfo_v2(ComputeInstance instance, ComputeInstanceInfo* info) {
  return compute_info(__func__, instance, info);
}

}  // extern "C"

}  // namespace gpuledger::nvml
