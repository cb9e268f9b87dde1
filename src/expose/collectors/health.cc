// SPDX-License-Identifier: Apache-2.0
#include <span>

#include "expose/collectors/collectors.h"

// Health of the GPUs. A lost GPU has none of these.
namespace gpuledger::expose {
namespace {

constexpr uint64_t kHertzPerMegahertz = 1'000'000;
constexpr uint64_t kBytesPerKiB = 1024;

// One series of a family: its reading, and its own labels.
struct Part {
  Vital vital;
  std::string_view labels;
};

constexpr Part kThrottled[] = {
    {Vital::kPowerViolation, "reason=\"power\""},
    {Vital::kThermalViolation, "reason=\"thermal\""},
    {Vital::kSyncBoostViolation, "reason=\"sync_boost\""},
    {Vital::kBoardLimitViolation, "reason=\"board_limit\""},
    {Vital::kLowUtilizationViolation, "reason=\"low_utilization\""},
    {Vital::kReliabilityViolation, "reason=\"reliability\""},
    {Vital::kAppClockViolation, "reason=\"application_clocks\""},
};
constexpr Part kEccErrors[] = {
    {Vital::kEccCorrectedVolatile, "type=\"corrected\",scope=\"volatile\""},
    {Vital::kEccUncorrectedVolatile, "type=\"uncorrected\",scope=\"volatile\""},
    {Vital::kEccCorrectedAggregate, "type=\"corrected\",scope=\"aggregate\""},
    {Vital::kEccUncorrectedAggregate, "type=\"uncorrected\",scope=\"aggregate\""},
};
constexpr Part kRetiredPages[] = {
    {Vital::kRetiredPagesSingleBit, "cause=\"single_bit\""},
    {Vital::kRetiredPagesDoubleBit, "cause=\"double_bit\""},
};
constexpr Part kRemappedRows[] = {
    {Vital::kRemappedRowsCorrectable, "cause=\"correctable\""},
    {Vital::kRemappedRowsUncorrectable, "cause=\"uncorrectable\""},
};
constexpr Part kNvlinkErrors[] = {
    {Vital::kNvlinkFlitErrors, "kind=\"crc_flit\""},
    {Vital::kNvlinkDataErrors, "kind=\"crc_data\""},
    {Vital::kNvlinkReplayErrors, "kind=\"replay\""},
    {Vital::kNvlinkRecoveryErrors, "kind=\"recovery\""},
};
constexpr Part kNvlinkTraffic[] = {
    {Vital::kNvlinkSent, "direction=\"sent\""},
    {Vital::kNvlinkReceived, "direction=\"received\""},
};

struct Throttle {
  ThrottleReason bit;
  std::string_view labels;
};
constexpr Throttle kThrottles[] = {
    {kThrottleAppClocks, "reason=\"application_clocks\""}, {kThrottleSwPowerCap, "reason=\"sw_power_cap\""},
    {kThrottleHwSlowdown, "reason=\"hw_slowdown\""},       {kThrottleSyncBoost, "reason=\"sync_boost\""},
    {kThrottleSwThermal, "reason=\"sw_thermal\""},         {kThrottleHwThermal, "reason=\"hw_thermal\""},
    {kThrottleHwPowerBrake, "reason=\"hw_power_brake\""},  {kThrottleDisplayClocks, "reason=\"display_clocks\""},
};

void add_parts(const DeviceSeries& device, Samples& samples, std::span<const Part> parts, uint64_t factor = 1) {
  for (const Part& part : parts) {
    if (const auto& value = device.reading().vitals[part.vital]) samples.add(*value * factor, part.labels);
  }
}

// Of a reading in percent.
std::optional<double> share_of(const DeviceSeries& device, Vital vital) {
  const auto& percent = device.reading().vitals[vital];
  return percent ? std::optional(Ratio::of_percent(static_cast<double>(*percent)).value) : std::nullopt;
}

void add_throttled_time(const DeviceSeries& device, Samples& samples) {
  for (const Part& part : kThrottled) {
    const auto& value = device.reading().vitals[part.vital];
    if (value) samples.add(Nanoseconds(static_cast<int64_t>(*value)), part.labels);
  }
}

void add_throttles(const DeviceSeries& device, Samples& samples) {
  const auto& reasons = device.reading().vitals[Vital::kThrottleReasons];
  if (!reasons) return;
  for (const Throttle& throttle : kThrottles) samples.add((*reasons & throttle.bit) != 0, throttle.labels);
}

// Values that show whether a GPU is healthy. Alerts and dashboards use them.
constexpr Row<DeviceSeries> kHealthRows[] = {
    {"gpu_ledger_temperature_celsius", kGauge, "sensor",
     "Temperature in degrees Celsius of the GPU (sensor gpu) and of its memory (memory). Absent if the GPU does not "
     "report it.",
     [](const DeviceSeries& device, Samples& samples) {
       samples.add(device.reading().temperature_celsius, "sensor=\"gpu\"");
       samples.add(device.reading().vitals[Vital::kMemoryTemperature], "sensor=\"memory\"");
     }},
    {"gpu_ledger_throttle_active", kGauge, "reason",
     "1 while the clocks are reduced for this reason, else 0. An idle GPU does not count as throttled. Absent if the "
     "GPU does not report it.",
     [](const DeviceSeries& device, Samples& samples) { add_throttles(device, samples); }},
    {"gpu_ledger_ecc_errors_total", kCounter, "type scope",
     "Memory errors by ECC, corrected and uncorrected, since the driver was loaded (scope volatile) and over the GPU's "
     "life (aggregate). Absent if the GPU does not report them.",
     [](const DeviceSeries& device, Samples& samples) { add_parts(device, samples, kEccErrors); }},
    {"gpu_ledger_retired_pages", kGauge, "cause",
     "Memory pages retired for double-bit or repeated single-bit errors. Only on GPUs up to Turing.",
     [](const DeviceSeries& device, Samples& samples) { add_parts(device, samples, kRetiredPages); }},
    {"gpu_ledger_retired_pages_pending", kGauge, "",
     "1 while pages will be retired at the next reset of the GPU, else 0. Only on GPUs up to Turing.",
     [](const DeviceSeries& device) { return device.reading().vitals[Vital::kRetiredPagesPending]; }},
    {"gpu_ledger_remapped_rows", kGauge, "cause", "Memory rows replaced by spare rows. Only on GPUs from Ampere on.",
     [](const DeviceSeries& device, Samples& samples) { add_parts(device, samples, kRemappedRows); }},
    {"gpu_ledger_row_remap_pending", kGauge, "",
     "1 while rows will be replaced at the next reset of the GPU, else 0. Only on GPUs from Ampere on.",
     [](const DeviceSeries& device) { return device.reading().vitals[Vital::kRemapPending]; }},
    {"gpu_ledger_row_remap_failed", kGauge, "",
     "1 if a row could not be replaced (replace the GPU), else 0. Only on GPUs from Ampere on.",
     [](const DeviceSeries& device) { return device.reading().vitals[Vital::kRemapFailed]; }},
    {"gpu_ledger_nvlink_errors_total", kCounter, "kind",
     "Errors on all NVLinks of the GPU, by kind. Absent if the GPU does not report them.",
     [](const DeviceSeries& device, Samples& samples) { add_parts(device, samples, kNvlinkErrors); }},
};

// More values of one GPU. No alert, rule or dashboard of ours uses these.
constexpr Row<DeviceSeries> kDetailRows[] = {
    {"gpu_ledger_clock_hertz", kGauge, "domain",
     "Clock in hertz of the SMs (domain sm) and of the memory (memory). Absent if the GPU does not report it.",
     [](const DeviceSeries& device, Samples& samples) {
       const DeviceSample& reading = device.reading();
       if (reading.sm_clock_mhz) samples.add(*reading.sm_clock_mhz * kHertzPerMegahertz, "domain=\"sm\"");
       const auto& memory = reading.vitals[Vital::kMemoryClock];
       if (memory) samples.add(*memory * kHertzPerMegahertz, "domain=\"memory\"");
     }},
    {"gpu_ledger_fan_speed_ratio", kGauge, "",
     "Requested fan speed as a share of full speed, 0 to 1. Absent on GPUs without a fan.",
     [](const DeviceSeries& device) { return share_of(device, Vital::kFan); }},
    {"gpu_ledger_throttle_seconds_total", kCounter, "reason",
     "Seconds in which the clocks were reduced for this reason since the driver was loaded. Absent if the GPU does not "
     "report it.",
     [](const DeviceSeries& device, Samples& samples) { add_throttled_time(device, samples); }},
    {"gpu_ledger_performance_state", kGauge, "",
     "Performance state of the GPU: 0 (P0, the fastest) to 15. Absent if the GPU does not report it.",
     [](const DeviceSeries& device) { return device.reading().vitals[Vital::kPerformanceState]; }},
    {"gpu_ledger_encoder_utilization_ratio", kGauge, "",
     "Share of time in which the video encoder was busy, 0 to 1. Absent if the GPU does not report it.",
     [](const DeviceSeries& device) { return share_of(device, Vital::kEncoder); }},
    {"gpu_ledger_decoder_utilization_ratio", kGauge, "",
     "Share of time in which the video decoder was busy, 0 to 1. Absent if the GPU does not report it.",
     [](const DeviceSeries& device) { return share_of(device, Vital::kDecoder); }},
    {"gpu_ledger_pcie_link_generation", kGauge, "",
     "Generation of the GPU's PCIe link now. It is lower while the GPU is idle. Absent if the GPU does not report it.",
     [](const DeviceSeries& device) { return device.reading().vitals[Vital::kPcieGeneration]; }},
    {"gpu_ledger_pcie_link_width", kGauge, "",
     "Lanes of the GPU's PCIe link now. Absent if the GPU does not report it.",
     [](const DeviceSeries& device) { return device.reading().vitals[Vital::kPcieWidth]; }},
    {"gpu_ledger_nvlink_bytes_total", kCounter, "direction",
     "Bytes on all NVLinks of the GPU, by direction. Absent if the GPU does not report them.",
     [](const DeviceSeries& device, Samples& samples) { add_parts(device, samples, kNvlinkTraffic, kBytesPerKiB); }},
    {"gpu_ledger_pcie_replays_total", kCounter, "",
     "PCIe packets that were sent again. Absent if the GPU does not report them.",
     [](const DeviceSeries& device) { return device.reading().vitals[Vital::kPcieReplays]; }},
};

}  // namespace

std::span<const Row<DeviceSeries>> health_rows() {
  return kHealthRows;
}

std::vector<Family> device_detail_families() {
  CatalogBuilder catalog("device-detail");
  catalog.add(rows_of(kDetailRows), "gpu uuid", &View::devices);
  return catalog.take();
}

}  // namespace gpuledger::expose
