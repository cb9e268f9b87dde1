// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace gpuledger {

// How a GPU is doing, beside its energy and its work. Whole numbers as the driver gives them; empty: the GPU cannot
// say. Counters fall to 0 with the driver or the GPU, as they like.
enum class Vital : uint8_t {
  kMemoryClock,        // MHz
  kMemoryTemperature,  // degrees Celsius
  kEncoder,            // percent
  kDecoder,            // percent
  kFan,                // percent of its full speed
  kThrottleReasons,    // bits: ThrottleReason
  kPowerViolation,     // ns throttled since the driver was loaded; so the others
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
};
inline constexpr size_t kVitalCount = static_cast<size_t>(Vital::kNvlinkReceived) + 1;

struct Vitals {
  std::array<std::optional<uint64_t>, kVitalCount> values{};
  std::optional<uint64_t>& operator[](Vital vital) { return values[static_cast<size_t>(vital)]; }
  const std::optional<uint64_t>& operator[](Vital vital) const { return values[static_cast<size_t>(vital)]; }
};

// NVML's bits. 0x1, a GPU that idles, is left out: nobody is slowed down by it.
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

// Which readings anybody shows: the others would cost driver time for nothing.
struct Readings {
  bool vitals = true;
  bool pcie_traffic = false;  // where the GPU has no monitors for it, 42 ms of every scan
};

}  // namespace gpuledger
