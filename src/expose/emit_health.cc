#include <span>
#include <string_view>

#include "expose/emit.h"

// How the GPUs are doing. A GPU that is down has none of these but its Xids: they are often why.
namespace gpuledger::expose {
namespace {

constexpr uint64_t kHertzPerMegahertz = 1'000'000;
constexpr uint64_t kBytesPerKiB = 1024;

// One series of a family: which reading it is, and the labels that tell it from the others.
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

template <typename Emit>
void for_each_up(const View& view, Emit emit) {
  for (const auto& device : view.devices) {
    if (device.sample != nullptr) emit(device, *device.sample);
  }
}

template <typename Convert>
void add_parts(const View& view, TextWriter& out, std::span<const Part> parts, Convert convert) {
  for_each_up(view, [&](const DeviceSeries& device, const DeviceSample& sample) {
    for (const Part& part : parts) {
      if (const auto& value = sample.vitals[part.vital]) out.add(device.labels, convert(*value), part.labels);
    }
  });
}

void add_counts(const View& view, TextWriter& out, std::span<const Part> parts) {
  add_parts(view, out, parts, [](uint64_t value) { return value; });
}

void add_one(const View& view, TextWriter& out, Vital vital) {
  const Part part{vital, {}};
  add_counts(view, out, {&part, 1});
}

}  // namespace

void emit_xid_seen(const View& view, TextWriter& out) {
  for (const auto& device : view.devices) {
    for (const auto& [xid, seen] : device.account->xid_seen) {
      // To the millisecond: what is below tells apart Xids of one moment and nothing else.
      out.add(device.labels, Thousandths{seen.count() / 1'000'000}, "xid=\"" + std::to_string(xid) + "\"");
    }
  }
}

void emit_temperature(const View& view, TextWriter& out) {
  for_each_up(view, [&](const DeviceSeries& device, const DeviceSample& sample) {
    if (sample.temperature_celsius) out.add(device.labels, *sample.temperature_celsius, "sensor=\"gpu\"");
    if (const auto& memory = sample.vitals[Vital::kMemoryTemperature]) {
      out.add(device.labels, *memory, "sensor=\"memory\"");
    }
  });
}

void emit_clock(const View& view, TextWriter& out) {
  for_each_up(view, [&](const DeviceSeries& device, const DeviceSample& sample) {
    if (sample.sm_clock_mhz) out.add(device.labels, *sample.sm_clock_mhz * kHertzPerMegahertz, "domain=\"sm\"");
    if (const auto& memory = sample.vitals[Vital::kMemoryClock]) {
      out.add(device.labels, *memory * kHertzPerMegahertz, "domain=\"memory\"");
    }
  });
}

void emit_fan(const View& view, TextWriter& out) {
  for_each_up(view, [&](const DeviceSeries& device, const DeviceSample& sample) {
    if (const auto& fan = sample.vitals[Vital::kFan]) out.add(device.labels, static_cast<double>(*fan) / 100);
  });
}

void emit_throttle_active(const View& view, TextWriter& out) {
  for_each_up(view, [&](const DeviceSeries& device, const DeviceSample& sample) {
    const auto& reasons = sample.vitals[Vital::kThrottleReasons];
    if (!reasons) return;
    for (const Throttle& throttle : kThrottles) {
      out.add(device.labels, uint64_t{(*reasons & throttle.bit) != 0}, throttle.labels);
    }
  });
}

void emit_throttle_seconds(const View& view, TextWriter& out) {
  add_parts(view, out, kThrottled, [](uint64_t value) { return Nanoseconds(static_cast<int64_t>(value)); });
}

void emit_ecc_errors(const View& view, TextWriter& out) {
  add_counts(view, out, kEccErrors);
}

void emit_retired_pages(const View& view, TextWriter& out) {
  add_counts(view, out, kRetiredPages);
}

void emit_retired_pages_pending(const View& view, TextWriter& out) {
  add_one(view, out, Vital::kRetiredPagesPending);
}

void emit_remapped_rows(const View& view, TextWriter& out) {
  add_counts(view, out, kRemappedRows);
}

void emit_row_remap_pending(const View& view, TextWriter& out) {
  add_one(view, out, Vital::kRemapPending);
}

void emit_row_remap_failed(const View& view, TextWriter& out) {
  add_one(view, out, Vital::kRemapFailed);
}

void emit_nvlink_errors(const View& view, TextWriter& out) {
  add_counts(view, out, kNvlinkErrors);
}

void emit_nvlink_bytes(const View& view, TextWriter& out) {
  add_parts(view, out, kNvlinkTraffic, [](uint64_t value) { return value * kBytesPerKiB; });
}

void emit_pcie_replays(const View& view, TextWriter& out) {
  add_one(view, out, Vital::kPcieReplays);
}

void emit_gpus_expected(const View& view, TextWriter& out) {
  if (view.cycle.gpus_expected) out.add(view.labels().take(), *view.cycle.gpus_expected);
}

void emit_gpus_missing(const View& view, TextWriter& out) {
  if (view.cycle.batch.missing_gpus) out.add(view.labels().take(), uint64_t{view.cycle.batch.missing_gpus->size()});
}

void emit_gpus_visible(const View& view, TextWriter& out) {
  uint64_t answering = 0;
  for (const auto& device : view.devices) answering += device.account->up ? 1 : 0;
  out.add(view.labels().take(), answering);
}

}  // namespace gpuledger::expose
