// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/owner.h"

namespace gpuledger::app {

// What a bill takes from the series of a name.
struct SeriesMeaning {
  enum class What {
    kMeter,
    kBooksOpened,
    kBooksRun,
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
    kBootTime,
    kStartTime,
  };
  What what;
  const OwnerKindRow* kind = nullptr;
};

inline constexpr std::string_view kNobodyKind = "nobody";
inline constexpr const char* kMeterName = "gpu_ledger_device_energy_joules_total";
inline constexpr const char* kBooksOpenedName = "gpu_ledger_books_opened_timestamp_seconds";

// Null: a bill does not ask for it.
const SeriesMeaning* meaning_of(std::string_view name);

// All names that a reading is made of, but the start time.
std::vector<std::string> reading_names();
// The same with the start time, which other programs have too.
std::vector<std::string> node_names();
// The selector of all series of these names.
std::string select_names(std::span<const std::string> names, const std::string& matchers);
// What pods and jobs are. An exporter says so only while they have a process or a GPU.
std::string info_selector(const std::string& matchers);
// The start times of all exporters with a meter, which are those of gpu-ledger.
std::string start_selector(const std::string& matchers);

}  // namespace gpuledger::app
