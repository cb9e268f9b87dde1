// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "model/owner.h"

namespace gpuledger::app {

// What a bill takes from the series of a name.
struct SeriesMeaning {
  enum class What {
    kMeter,
    kUnattributed,
    kEnergy,
    kGpuTime,
    kError,
    kClosedEnergy,
    kClosedGpuTime,
    kDeviceInfo,
    kPodInfo,
    kJobInfo,
    kSnapshotTime,
    kStartTime,
    kSource,
  };
  What what;
  const OwnerKindRow* kind = nullptr;
};

inline constexpr std::string_view kNobodyKind = "nobody";
inline constexpr const char* kMeterName = "gpu_ledger_device_energy_joules_total";

// Null: a bill does not ask for it.
const SeriesMeaning* meaning_of(std::string_view name);

// The selector of all series that a reading is made of. With a start time and the
// exporter's sources if `one_node`: other programs have a start time too.
std::string reading_selector(const std::string& matchers, bool one_node);
// The start times of all exporters with a meter, which are those of gpu-ledger.
std::string start_selector(const std::string& matchers);

}  // namespace gpuledger::app
