// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "node.h"

// The board around the chip: firmware, fans, displays, the clocks it can be set to.
using namespace gpuledger::sim;

namespace gpuledger::nvml {
namespace {

constexpr unsigned kClockStep = 15;  // MHz

unsigned fan_percent(const Gpu& gpu) {
  return static_cast<unsigned>(std::lround(std::max(0.0, shown_temperature(gpu) - 30) * 1.5));
}

// Like all lists of the driver: if the buffer is too small, it returns the needed size.
Return copy_list(const std::vector<unsigned>& list, unsigned* count, unsigned* out) {
  if (!count) return kInvalidArgument;
  const unsigned capacity = *count;
  *count = static_cast<unsigned>(list.size());
  if (capacity < list.size()) return kInsufficientSize;
  if (!out) return kInvalidArgument;
  std::copy(list.begin(), list.end(), out);
  return kSuccess;
}

}  // namespace

extern "C" {

Return nvmlDeviceGetVbiosVersion(Device device, char* version, unsigned length) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    const GpuSpec& spec = gpu.spec();
    return copy_text(spec.vbios.empty() ? vbios_version(spec.model) : spec.vbios, version, length);
  });
}

Return nvmlDeviceGetInforomImageVersion(Device device, char* version, unsigned length) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    const std::string board = std::to_string(500 + gpu.spec().model.pci_device % 100);
    return copy_text("G" + board + ".0282.02.02", version, length);
  });
}

Return nvmlDeviceGetNumFans(Device device, unsigned* count) {
  return read_gpu(__func__, device, count, [](Gpu& gpu) { return gpu.spec().model.fan ? 1u : 0u; });
}

Return nvmlDeviceGetFanSpeed(Device device, unsigned* percent) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    if (!percent) return kInvalidArgument;
    if (!gpu.spec().model.fan) return kNotSupported;
    *percent = fan_percent(gpu);
    return kSuccess;
  });
}

Return nvmlDeviceGetFanSpeed_v2(Device device, unsigned fan, unsigned* percent) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    if (!percent || fan > 0 || !gpu.spec().model.fan) return kInvalidArgument;
    *percent = fan_percent(gpu);
    return kSuccess;
  });
}

Return nvmlDeviceGetDisplayActive(Device device, unsigned* active) {
  return read_gpu(__func__, device, active, [](Gpu&) { return 0u; });
}

// An H200 reports a display, although none can be connected.
Return nvmlDeviceGetDisplayMode(Device device, unsigned* mode) {
  return read_gpu(__func__, device, mode, [](Gpu&) { return kFeatureEnabled; });
}

// Windows only.
Return nvmlDeviceGetDriverModel(Device device, unsigned*, unsigned*) {
  return on_gpu(__func__, device, [](Node&, Gpu&) { return kNotSupported; });
}

Return nvmlDeviceGetDriverModel_v2(Device device, unsigned*, unsigned*) {
  return on_gpu(__func__, device, [](Node&, Gpu&) { return kNotSupported; });
}

Return nvmlDeviceGetApplicationsClock(Device device, unsigned type, unsigned* mhz) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    if (!mhz || type > kClockMemory) return kInvalidArgument;
    *mhz = type == kClockMemory ? gpu.spec().model.memory_mhz : gpu.spec().model.sm_mhz;
    return kSuccess;
  });
}

Return nvmlDeviceGetSupportedMemoryClocks(Device device, unsigned* count, unsigned* mhz) {
  return on_gpu(__func__, device,
                [&](Node&, Gpu& gpu) { return copy_list({gpu.spec().model.memory_mhz}, count, mhz); });
}

Return nvmlDeviceGetSupportedGraphicsClocks(Device device, unsigned memory_mhz, unsigned* count, unsigned* mhz) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    const GpuModel& model = gpu.spec().model;
    if (memory_mhz != model.memory_mhz) return kNotFound;
    std::vector<unsigned> clocks;
    for (unsigned clock = model.sm_mhz; clock >= model.idle_sm_mhz; clock -= kClockStep) clocks.push_back(clock);
    return copy_list(clocks, count, mhz);
  });
}

}  // extern "C"

}  // namespace gpuledger::nvml
