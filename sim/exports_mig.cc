// SPDX-License-Identifier: Apache-2.0
#include "mig_profile.h"
#include "node.h"

// MIG devices: an instance as a client sees it, like a GPU.
using namespace gpuledger::sim;

namespace gpuledger::nvml {

extern "C" {

Return nvmlDeviceGetMigMode(Device device, unsigned* current, unsigned* pending) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    if (!current || !pending) return kInvalidArgument;
    if (gpu.spec().model.mig_slices == 0) return kNotSupported;
    *current = *pending = gpu.spec().mig ? 1 : 0;
    return kSuccess;
  });
}

Return nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned* count) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    if (!count) return kInvalidArgument;
    // Positions of destroyed instances are not used again, so there may be more positions than slices.
    const size_t positions = std::max<size_t>(gpu.spec().model.mig_slices, gpu.spec().instances.size());
    *count = gpu.spec().model.mig_slices == 0 ? 0 : static_cast<unsigned>(positions);
    return kSuccess;
  });
}

Return nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device* mig) {
  return on_device(__func__, device, [&](Node& node, Target& target) {
    if (!mig || target.instance) return kInvalidArgument;
    const GpuSpec& spec = target.gpu->spec();
    if (spec.model.mig_slices == 0) return kNotSupported;
    if (index >= spec.instances.size()) return kNotFound;
    if (!there(spec.instances[index], node.now())) return kNotFound;
    *mig = node.handle(target.index, static_cast<int>(index));
    return kSuccess;
  });
}

Return nvmlDeviceGetGpuInstanceId(Device device, unsigned* id) {
  return on_device(__func__, device, [&](Node&, Target& target) {
    if (!id) return kInvalidArgument;
    if (!target.instance) return kNotSupported;
    *id = target.instance->gpu_instance;
    return kSuccess;
  });
}

Return nvmlDeviceGetComputeInstanceId(Device device, unsigned* id) {
  return on_device(__func__, device, [&](Node&, Target& target) {
    if (!id) return kInvalidArgument;
    if (!target.instance) return kNotSupported;
    *id = target.instance->compute_instance;
    return kSuccess;
  });
}

Return nvmlDeviceGetAttributes_v2(Device device, DeviceAttributes* attributes) {
  return on_device(__func__, device, [&](Node& node, Target& target) {
    if (!attributes) return kInvalidArgument;
    if (!target.instance) return kNotSupported;
    const MigProfile profile = profile_of(target.gpu->spec().model, *target.instance);
    const unsigned slices = compute_slices(target.gpu->spec(), *target.instance, node.now());
    *attributes = DeviceAttributes{};
    attributes->multiprocessorCount = profile.sm_count * slices / target.instance->slices;
    attributes->sharedCopyEngineCount = profile.copy_engines;
    attributes->sharedDecoderCount = profile.decoders;
    attributes->sharedJpegCount = profile.jpeg_engines;
    attributes->sharedOfaCount = profile.optical_flow;
    attributes->gpuInstanceSliceCount = target.instance->slices;
    attributes->computeInstanceSliceCount = slices;
    attributes->memorySizeMB = target.instance->memory_mb;
    return kSuccess;
  });
}

Return nvmlDeviceIsMigDeviceHandle(Device device, unsigned* is_mig) {
  return on_device(__func__, device, [&](Node&, Target& target) {
    if (!is_mig) return kInvalidArgument;
    *is_mig = target.instance ? 1 : 0;
    return kSuccess;
  });
}

Return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device mig, Device* device) {
  return on_device(__func__, mig, [&](Node& node, Target& target) {
    if (!device || !target.instance) return kInvalidArgument;
    *device = node.handle(target.index);
    return kSuccess;
  });
}

}  // extern "C"

}  // namespace gpuledger::nvml
