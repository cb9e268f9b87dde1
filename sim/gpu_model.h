// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace gpuledger::sim {

// The activities GPM reports, in percent.
enum GpmIndex : unsigned { kGfx, kSm, kOccupancy, kTensor, kDram, kFp32, kFp64, kFp16, kInteger, kGpmCount };
using GpmMix = std::array<double, kGpmCount>;

// The bus carries so many MiB a second for each percent of the memory's activity.
inline constexpr double kPcieSentPerPercent = 3;
inline constexpr double kPcieReceivedPerPercent = 9;

// Features and watts of a GPU model. Those of the H200 are measured; the others are scaled from their power limits.
struct GpuModel {
  std::string key;   // in scenarios
  std::string name;  // in the driver
  unsigned architecture = 9;
  int compute_major = 9;
  int compute_minor = 0;
  unsigned brand = 14;
  uint64_t memory_mib = 0;
  double limit_watts = 0;
  double idle_watts = 0;
  double resident_watts = 0;   // more than idle, because a context exists
  unsigned mig_slices = 0;     // 0: no MIG
  bool energy_counter = true;  // Volta and newer
  bool gpm = false;            // Hopper and newer
  bool encoder = false;
  bool fan = false;
  bool averages_power = true;  // nvmlDeviceGetPowerUsage is a 1 s mean; false: the present value (GA100 and older)
  unsigned sm_count = 0;
  unsigned sm_mhz = 0;
  unsigned idle_sm_mhz = 0;
  unsigned memory_mhz = 0;
  unsigned pci_device = 0;
  bool hbm = false;  // and with it a sensor for the memory's temperature
  unsigned nvlinks = 0;
};

const GpuModel* find_gpu_model(std::string_view key);
// The window through which the CPU reaches the GPU's memory.
uint64_t bar1_mib(const GpuModel& model);
std::string vbios_version(const GpuModel& model);
// By the driver's name, for traces.
const GpuModel* find_gpu_model_by_name(std::string_view name);
std::string gpu_model_keys();

// A kind of work: its fraction of the GPU's dynamic watts, and its activity in GPM.
struct WorkPreset {
  std::string_view key;
  double intensity;
  double busy;
  double memory;
  double encoder;
  double decoder;
  GpmMix gpm;
};

const WorkPreset* find_work_preset(std::string_view key);
std::string work_preset_keys();

}  // namespace gpuledger::sim
