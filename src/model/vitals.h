// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace gpuledger {

// State of a GPU, beside its energy and its work. Integers as the driver gives them; empty: the GPU does not report it.
// Counters restart at 0 with the driver or the GPU.
enum class Vital : uint8_t {
  kMemoryClock,        // MHz
  kMemoryTemperature,  // degrees Celsius
  kEncoder,            // percent
  kDecoder,            // percent
  kFan,                // percent of full speed
  kThrottleReasons,    // bits: ThrottleReason
  kPowerViolation,     // ns throttled since the driver was loaded, as below
  kThermalViolation,
  kSyncBoostViolation,
  kBoardLimitViolation,
  kLowUtilizationViolation,
  kReliabilityViolation,
  kAppClockViolation,
  kPcieReplays,
  kEccCorrectedVolatile,  // since the driver was loaded
  kEccUncorrectedVolatile,
  kEccCorrectedAggregate,  // of the GPU's life
  kEccUncorrectedAggregate,
  kRetiredPagesSingleBit,
  kRetiredPagesDoubleBit,
  kRetiredPagesPending,  // 0 or 1
  kRemappedRowsCorrectable,
  kRemappedRowsUncorrectable,
  kRemapPending,  // 0 or 1
  kRemapFailed,   // 0 or 1
  kNvlinkFlitErrors,
  kNvlinkDataErrors,
  kNvlinkReplayErrors,
  kNvlinkRecoveryErrors,
  kNvlinkSent,  // KiB
  kNvlinkReceived,
  kPerformanceState,  // 0 (fastest) to 15
  kPcieGeneration,    // of the link now: it falls while the GPU is idle
  kPcieWidth,         // lanes, likewise
};
inline constexpr size_t kVitalCount = static_cast<size_t>(Vital::kPcieWidth) + 1;

struct Vitals {
  std::array<std::optional<uint64_t>, kVitalCount> values{};
  std::optional<uint64_t>& operator[](Vital vital) { return values[static_cast<size_t>(vital)]; }
  const std::optional<uint64_t>& operator[](Vital vital) const { return values[static_cast<size_t>(vital)]; }
};

// NVML's bits. 0x1, an idle GPU, is left out: it slows nothing down.
enum ThrottleReason : uint64_t {
  kThrottleAppClocks = 0x2,
  kThrottleSwPowerCap = 0x4,
  kThrottleHwSlowdown = 0x8,
  kThrottleSyncBoost = 0x10,
  kThrottleSwThermal = 0x20,
  kThrottleHwThermal = 0x40,
  kThrottleHwPowerBrake = 0x80,
  kThrottleDisplayClocks = 0x100,
};

// Bytes per second, over the last step or the last scan.
struct Traffic {
  std::optional<double> pcie_sent;
  std::optional<double> pcie_received;
  std::optional<double> nvlink_sent;
  std::optional<double> nvlink_received;
};

// Which readings are shown. The others are not read, to save driver time.
struct Readings {
  bool vitals = true;
  bool pcie_traffic = false;  // if the monitors do not report it: takes 42 ms of every scan
};

}  // namespace gpuledger
