// SPDX-License-Identifier: Apache-2.0
#include "sample/dcgm/dcgm_fields.h"

#include <array>
#include <vector>

#include "model/most_power.h"

namespace gpuledger::dcgm {

namespace {

constexpr double kHottest = 200;  // degrees; more means a missing sensor

std::optional<Ratio> percent(const Reading& reading) {
  const auto value = reading.number();
  if (!value || *value < 0 || *value > 100) return std::nullopt;
  return Ratio::of_percent(*value);
}

std::optional<Bytes> mebibytes(const Reading& reading) {
  const auto value = reading.count();
  return value && *value < (1ull << 43) ? std::optional(Bytes{*value << 20}) : std::nullopt;
}

std::optional<Power> watts(const Reading& reading) {
  const auto value = reading.number();
  constexpr double kMost = 1e5;
  return value && *value >= 0 && *value < kMost ? std::optional(Power::watts(*value)) : std::nullopt;
}

std::optional<double> megahertz(const Reading& reading) {
  const auto value = reading.number();
  return value && *value >= 0 ? value : std::nullopt;
}

std::optional<uint32_t> small(const Reading& reading) {
  const auto value = reading.count();
  return value && *value <= UINT32_MAX ? std::optional(static_cast<uint32_t>(*value)) : std::nullopt;
}

template <typename Place>
struct Row {
  FieldId field;
  void (*store)(const Reading& reading, Place& out);
};

template <typename Place, size_t kCount>
bool store(const Row<Place> (&rows)[kCount], const Reading& reading, Place& out) {
  for (const Row<Place>& row : rows) {
    if (row.field != reading.field) continue;
    row.store(reading, out);
    return true;
  }
  return false;
}

const Row<DeviceDescription> kDescription[] = {
    {50, [](const Reading& r, DeviceDescription& out) { out.model = r.text().value_or(out.model); }},
    {52,
     [](const Reading& r, DeviceDescription& out) {
       if (const auto index = small(r)) out.index = *index;
     }},
    {kFieldUuid, [](const Reading& r, DeviceDescription& out) { out.uuid.text = r.text().value_or(out.uuid.text); }},
    {55,
     [](const Reading& r, DeviceDescription& out) {
       if (const auto minor = small(r)) out.minor = *minor;
     }},
    {57, [](const Reading& r, DeviceDescription& out) { out.pci_bus_id = r.text().value_or(out.pci_bus_id); }},
    {67,
     [](const Reading& r, DeviceDescription& out) {
       // The engine reports MIG as off also on a GPU without MIG: the two cannot be told apart.
       out.mig_known = r.count().value_or(0) != 0;
       if (out.mig_known) out.mig_enabled = true;
     }},
    {164,
     [](const Reading& r, DeviceDescription& out) {
       const auto limit = watts(r);
       if (limit && is_power_limit(*limit)) out.power_limit = limit;
     }},
};

const Row<DeviceSample> kDevice[] = {
    {100, [](const Reading& r, DeviceSample& out) { out.sm_clock_mhz = megahertz(r); }},
    {150,
     [](const Reading& r, DeviceSample& out) {
       const auto celsius = r.number();
       if (celsius && *celsius <= kHottest) out.temperature_celsius = celsius;
     }},
    {155, [](const Reading& r, DeviceSample& out) { out.power = watts(r); }},
    {kFieldEnergy,
     [](const Reading& r, DeviceSample& out) {
       const auto mj = r.integer();
       if (mj && *mj >= 0 && *mj <= kMostMillijoules) out.energy_counter = Energy::millijoules(*mj);
     }},
    {203, [](const Reading& r, DeviceSample& out) { out.gpu_utilization = percent(r); }},
    {204, [](const Reading& r, DeviceSample& out) { out.memory_utilization = percent(r); }},
    {250, [](const Reading& r, DeviceSample& out) { out.memory_total = mebibytes(r); }},
    {251, [](const Reading& r, DeviceSample& out) { out.memory_free = mebibytes(r); }},
    {252, [](const Reading& r, DeviceSample& out) { out.memory_used = mebibytes(r); }},
    {253, [](const Reading& r, DeviceSample& out) { out.memory_reserved = mebibytes(r); }},
};

struct VitalRow {
  FieldId field;
  Vital vital;
};
// Violation times are the driver's nanoseconds, passed through, despite the unit in older headers.
constexpr VitalRow kVitals[] = {
    {101, Vital::kMemoryClock},
    {112, Vital::kThrottleReasons},
    {140, Vital::kMemoryTemperature},
    {191, Vital::kFan},
    {202, Vital::kPcieReplays},
    {206, Vital::kEncoder},
    {207, Vital::kDecoder},
    {240, Vital::kPowerViolation},
    {241, Vital::kThermalViolation},
    {242, Vital::kSyncBoostViolation},
    {243, Vital::kBoardLimitViolation},
    {244, Vital::kLowUtilizationViolation},
    {245, Vital::kReliabilityViolation},
    {246, Vital::kAppClockViolation},
    {310, Vital::kEccCorrectedVolatile},
    {311, Vital::kEccUncorrectedVolatile},
    {312, Vital::kEccCorrectedAggregate},
    {313, Vital::kEccUncorrectedAggregate},
    {390, Vital::kRetiredPagesSingleBit},
    {391, Vital::kRetiredPagesDoubleBit},
    {392, Vital::kRetiredPagesPending},
    {393, Vital::kRemappedRowsUncorrectable},
    {394, Vital::kRemappedRowsCorrectable},
    {395, Vital::kRemapFailed},
    {396, Vital::kRemapPending},
    {409, Vital::kNvlinkFlitErrors},
    {419, Vital::kNvlinkDataErrors},
    {429, Vital::kNvlinkReplayErrors},
    {439, Vital::kNvlinkRecoveryErrors},
};

std::optional<Ratio> ratio(const Reading& reading) {
  const auto value = reading.number();
  if (!value || *value < 0 || *value > 1) return std::nullopt;
  return Ratio{*value};
}

template <Activity::Part kPart>
void store_part(const Reading& reading, Activity& out) {
  out.parts[kPart] = ratio(reading);
}

template <auto kMember>
void store_traffic(const Reading& reading, Activity& out) {
  const auto bytes = reading.number();
  if (bytes && *bytes >= 0) out.traffic.*kMember = bytes;
}

// Begins with the fields of fewer_profiling_fields().
const Row<Activity> kProfiling[] = {
    {1001, [](const Reading& r, Activity& out) { out.graphics = ratio(r); }},
    {1002, store_part<Activity::kSm>},
    {1003, store_part<Activity::kOccupancy>},
    {1004, store_part<Activity::kTensor>},
    {1005, store_part<Activity::kDram>},
    {1006, store_part<Activity::kFp64>},
    {1007, store_part<Activity::kFp32>},
    {1009, store_traffic<&Traffic::pcie_sent>},
    {1010, store_traffic<&Traffic::pcie_received>},
};
constexpr size_t kFewer = 5;

template <typename... Tables>
std::vector<FieldId> ids_of(const Tables&... tables) {
  std::vector<FieldId> ids;
  const auto add = [&](const auto& table) {
    for (const auto& row : table) ids.push_back(row.field);
  };
  (add(tables), ...);
  return ids;
}

}  // namespace

std::span<const FieldId> description_fields() {
  static const std::vector<FieldId> ids = ids_of(kDescription);
  return ids;
}

void add_to_description(const Reading& reading, DeviceDescription& out) {
  store(kDescription, reading, out);
}

std::span<const FieldId> device_fields() {
  static const std::vector<FieldId> ids = ids_of(kDevice, kVitals);
  return ids;
}

void add_to_device(const Reading& reading, DeviceSample& out) {
  if (store(kDevice, reading, out)) return;
  for (const VitalRow& row : kVitals) {
    if (row.field != reading.field) continue;
    const auto value = reading.count();
    // The engine does not check whether the driver had this value; it gives 0 if not.
    const bool no_sensor = value && (*value == 0 || static_cast<double>(*value) > kHottest);
    if (row.vital == Vital::kMemoryTemperature && no_sensor) return;
    out.vitals[row.vital] = value;
    return;
  }
}

std::span<const FieldId> profiling_fields() {
  static const std::vector<FieldId> ids = ids_of(kProfiling);
  return ids;
}

std::span<const FieldId> fewer_profiling_fields() {
  return profiling_fields().first(kFewer);
}

bool add_to_activity(const Reading& reading, Activity& out) {
  return reading.number() && store(kProfiling, reading, out);
}

}  // namespace gpuledger::dcgm
