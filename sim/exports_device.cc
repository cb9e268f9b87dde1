// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "mig_profile.h"
#include "node.h"

// What a GPU is and how it is doing, without its power and its processes.
using namespace gpuledger::sim;

namespace gpuledger::nvml {
namespace {

constexpr unsigned kUtilizationPeriodMicros = 200000;

Return engine_use(const char* call, Device device, unsigned* percent, unsigned* period, unsigned GpuState::*use) {
  return on_gpu(call, device, [&](Node&, Gpu& gpu) {
    if (!percent || !period) return kInvalidArgument;
    if (gpu.spec().mig) return kNotSupported;
    *percent = use ? gpu.state().*use : 0;
    *period = kUtilizationPeriodMicros;
    return kSuccess;
  });
}

// MIG instances have memory of their own.
void memory_of(const Target& target, unsigned long long* total, unsigned long long* used) {
  if (!target.instance) {
    *total = target.gpu->spec().model.memory_mib << 20;
    *used = target.gpu->state().memory_used;
    return;
  }
  *total = target.instance->memory_mb << 20;
  *used = 0;
  for (const Context& context : target.gpu->state().contexts) {
    if (context.gpu_instance == target.instance->gpu_instance) *used += context.memory.value_or(0);
  }
}

}  // namespace

extern "C" {

Return nvmlDeviceGetUUID(Device device, char* uuid, unsigned length) {
  return on_device(__func__, device, [&](Node&, Target& target) {
    return copy_text(target.instance ? target.instance->uuid : target.gpu->spec().uuid, uuid, length);
  });
}

Return nvmlDeviceGetName(Device device, char* name, unsigned length) {
  return on_device(__func__, device, [&](Node&, Target& target) {
    const std::string mig = target.instance ? " MIG " + target.instance->profile : "";
    return copy_text(target.gpu->spec().model.name + mig, name, length);
  });
}

Return nvmlDeviceGetSerial(Device device, char* serial, unsigned length) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) { return copy_text(gpu.spec().serial, serial, length); });
}

Return nvmlDeviceGetIndex(Device device, unsigned* index) {
  return on_device(__func__, device, [&](Node& node, Target& target) {
    if (!index) return kInvalidArgument;
    *index = target.instance ? static_cast<unsigned>(node.find(device)->instance) : target.index;
    return kSuccess;
  });
}

Return nvmlDeviceGetMinorNumber(Device device, unsigned* minor) {
  return on_device(__func__, device, [&](Node&, Target& target) {
    if (!minor) return kInvalidArgument;
    *minor = target.index;
    return kSuccess;
  });
}

Return nvmlDeviceGetPciInfo_v3(Device device, PciInfo* pci) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    if (!pci) return kInvalidArgument;
    const GpuSpec& spec = gpu.spec();
    *pci = PciInfo{};
    snprintf(pci->busId, sizeof pci->busId, "%s", spec.pci_bus_id.c_str());
    // The old form has four digits of domain.
    const char* legacy = spec.pci_bus_id.size() > 4 ? spec.pci_bus_id.c_str() + 4 : spec.pci_bus_id.c_str();
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%.15s", legacy);
    pci->bus = spec.pci_bus;
    pci->pciDeviceId = spec.model.pci_device << 16 | 0x10DE;
    return kSuccess;
  });
}

Return nvmlDeviceGetArchitecture(Device device, unsigned* architecture) {
  return read_gpu(__func__, device, architecture, [](Gpu& gpu) { return gpu.spec().model.architecture; });
}

Return nvmlDeviceGetBrand(Device device, unsigned* brand) {
  return read_gpu(__func__, device, brand, [](Gpu& gpu) { return gpu.spec().model.brand; });
}

Return nvmlDeviceGetCudaComputeCapability(Device device, int* major, int* minor) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    if (!major || !minor) return kInvalidArgument;
    *major = gpu.spec().model.compute_major;
    *minor = gpu.spec().model.compute_minor;
    return kSuccess;
  });
}

Return nvmlDeviceGetNumGpuCores(Device device, unsigned* count) {
  return read_gpu(__func__, device, count, [](Gpu& gpu) { return gpu.spec().model.sm_count * 128; });
}

Return nvmlDeviceGetPersistenceMode(Device device, unsigned* mode) {
  return read_gpu(__func__, device, mode, [](Gpu&) { return 1u; });
}

Return nvmlDeviceGetComputeMode(Device device, unsigned* mode) {
  constexpr unsigned kExclusiveProcess = 3;  // what an MPS node sets
  return read_gpu(__func__, device, mode, [](Gpu& gpu) {
    for (const Context& context : gpu.state().contexts) {
      if (context.mps_client) return kExclusiveProcess;
    }
    return 0u;
  });
}

Return nvmlDeviceGetVirtualizationMode(Device device, unsigned* mode) {
  return read_gpu(__func__, device, mode, [](Gpu&) { return 0u; });
}

Return nvmlDeviceGetUtilizationRates(Device device, Utilization* utilization) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    if (!utilization) return kInvalidArgument;
    if (gpu.spec().mig) return kNotSupported;
    *utilization = {gpu.state().gpu_percent, gpu.state().memory_percent};
    return kSuccess;
  });
}

Return nvmlDeviceGetEncoderUtilization(Device device, unsigned* percent, unsigned* period_us) {
  return engine_use(__func__, device, percent, period_us, &GpuState::encoder_percent);
}

Return nvmlDeviceGetDecoderUtilization(Device device, unsigned* percent, unsigned* period_us) {
  return engine_use(__func__, device, percent, period_us, &GpuState::decoder_percent);
}

Return nvmlDeviceGetJpgUtilization(Device device, unsigned* percent, unsigned* period_us) {
  return engine_use(__func__, device, percent, period_us, nullptr);
}

Return nvmlDeviceGetOfaUtilization(Device device, unsigned* percent, unsigned* period_us) {
  return engine_use(__func__, device, percent, period_us, nullptr);
}

Return nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  return on_device(__func__, device, [&](Node&, Target& target) {
    if (!memory) return kInvalidArgument;
    memory_of(target, &memory->total, &memory->used);
    memory->free = memory->total - memory->used;
    return kSuccess;
  });
}

Return nvmlDeviceGetMemoryInfo_v2(Device device, Memory_v2* memory) {
  return on_device(__func__, device, [&](Node&, Target& target) {
    if (!memory) return kInvalidArgument;
    if (memory->version != kMemoryVersion2) return kArgumentVersionMismatch;
    memory_of(target, &memory->total, &memory->used);
    memory->reserved = target.instance ? 0 : memory->total / 240;
    memory->used -= std::min(memory->used, memory->reserved);
    memory->free = memory->total - memory->used - memory->reserved;
    return kSuccess;
  });
}

Return nvmlDeviceGetBAR1MemoryInfo(Device device, BAR1Memory* memory) {
  return on_device(__func__, device, [&](Node&, Target& target) {
    if (!memory) return kInvalidArgument;
    const GpuModel& model = target.gpu->spec().model;
    unsigned long long total = bar1_mib(model) << 20;
    if (target.instance) total = total * profile_of(model, *target.instance).memory_slices / kMemorySlices;
    const unsigned long long used = std::min(total, 1664ull << 10);
    *memory = {total, total - used, used};
    return kSuccess;
  });
}

Return nvmlDeviceGetTemperature(Device device, unsigned sensor, unsigned* celsius) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    if (!celsius || sensor != kTemperatureGpu) return kInvalidArgument;
    *celsius = static_cast<unsigned>(std::lround(shown_temperature(gpu)));
    return kSuccess;
  });
}

Return nvmlDeviceGetTemperatureV(Device device, Temperature_v1* temperature) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    if (!temperature || temperature->sensorType != kTemperatureGpu) return kInvalidArgument;
    if (temperature->version != struct_version(sizeof(Temperature_v1), 1)) return kArgumentVersionMismatch;
    temperature->temperature = static_cast<int>(std::lround(shown_temperature(gpu)));
    return kSuccess;
  });
}

Return nvmlDeviceGetTemperatureThreshold(Device device, unsigned type, unsigned* celsius) {
  constexpr unsigned kThresholds[] = {92, 89, 95, 87};  // shutdown, slowdown, memory, GPU
  return on_gpu(__func__, device, [&](Node&, Gpu&) {
    if (!celsius) return kInvalidArgument;
    if (type >= std::size(kThresholds)) return kNotSupported;
    *celsius = kThresholds[type];
    return kSuccess;
  });
}

Return nvmlDeviceGetClockInfo(Device device, unsigned type, unsigned* mhz) {
  constexpr unsigned kMemoryClock = 2, kVideoClock = 3;
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    if (!mhz || type > kVideoClock) return kInvalidArgument;
    *mhz = type == kMemoryClock ? gpu.spec().memory_clock.value_or(gpu.state().memory_mhz) : gpu.state().sm_mhz;
    return kSuccess;
  });
}

Return nvmlDeviceGetMaxClockInfo(Device device, unsigned type, unsigned* mhz) {
  constexpr unsigned kMemoryClock = 2, kVideoClock = 3;
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    if (!mhz || type > kVideoClock) return kInvalidArgument;
    *mhz = type == kMemoryClock ? gpu.spec().model.memory_mhz : gpu.spec().model.sm_mhz;
    return kSuccess;
  });
}

Return nvmlDeviceGetPerformanceState(Device device, unsigned* state) {
  return read_gpu(__func__, device, state, [](Gpu& gpu) { return gpu.state().contexts.empty() ? 8u : 0u; });
}

Return nvmlDeviceGetCurrentClocksEventReasons(Device device, unsigned long long* reasons) {
  return read_gpu(__func__, device, reasons, [](Gpu& gpu) { return gpu.state().event_reasons; });
}

Return nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long* reasons) {
  return read_gpu(__func__, device, reasons, [](Gpu& gpu) { return gpu.state().event_reasons; });
}

// The same traffic as GPM's, in thousands of bytes.
Return nvmlDeviceGetPcieThroughput(Device device, unsigned counter, unsigned* kilobytes) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    if (!kilobytes || counter > kPcieReceived) return kInvalidArgument;
    const double scale = counter == kPcieSent ? kPcieSentPerPercent : kPcieReceivedPerPercent;
    *kilobytes = static_cast<unsigned>(std::lround(gpu.state().activity_now[kDram] * scale * (1 << 20) / 1000));
    return kSuccess;
  });
}

Return nvmlDeviceGetPcieReplayCounter(Device device, unsigned* count) {
  return read_gpu(__func__, device, count, [](Gpu&) { return 0u; });
}

Return nvmlDeviceGetCurrPcieLinkGeneration(Device device, unsigned* generation) {
  return read_gpu(__func__, device, generation, [](Gpu& gpu) { return gpu.spec().model.architecture >= 9 ? 5u : 4u; });
}

Return nvmlDeviceGetMaxPcieLinkGeneration(Device device, unsigned* generation) {
  return read_gpu(__func__, device, generation, [](Gpu& gpu) { return gpu.spec().model.architecture >= 9 ? 5u : 4u; });
}

Return nvmlDeviceGetCurrPcieLinkWidth(Device device, unsigned* width) {
  return read_gpu(__func__, device, width, [](Gpu&) { return 16u; });
}

Return nvmlDeviceGetMaxPcieLinkWidth(Device device, unsigned* width) {
  return read_gpu(__func__, device, width, [](Gpu&) { return 16u; });
}

}  // extern "C"

}  // namespace gpuledger::nvml
