// SPDX-License-Identifier: Apache-2.0
#include "expose/collectors/dcgm.h"

#include <algorithm>
#include <cmath>

#include "expose/numbers.h"

namespace gpuledger::expose {
namespace {

using Number = std::optional<Value>;
constexpr unsigned kMiBShift = 20;

const DeviceSample& sample_of(const Seat& seat) {
  return *seat.device->sample;
}

template <typename T>
Number number(const std::optional<T>& value) {
  return value ? Number(*value) : std::nullopt;
}

template <Vital kVital>
Number vital(const Seat& seat) {
  return number(sample_of(seat).vitals[kVital]);
}

template <auto kMember>
Number gauge(const Seat& seat) {
  return number(sample_of(seat).*kMember);
}

template <auto kMember>
Number percent(const Seat& seat) {
  const std::optional<Ratio>& ratio = sample_of(seat).*kMember;
  return ratio ? Number(percent_of(ratio->value)) : std::nullopt;
}

Number power(const Seat& seat) {
  return number(seat.power);
}

Number memory_used(const Seat& seat) {
  return number(seat.memory_used_mib);
}

Number memory_free(const Seat& seat) {
  if (seat.instance) {
    const auto& total = seat.instance->memory_total;
    const auto& used = seat.instance->memory_used;
    return total && used && *used <= *total ? Number((total->count - used->count) >> kMiBShift) : std::nullopt;
  }
  const auto& free = sample_of(seat).memory_free;
  return free ? Number(free->count >> kMiBShift) : std::nullopt;
}

Number memory_reserved(const Seat& seat) {
  const auto& reserved = sample_of(seat).memory_reserved;
  return reserved && !seat.instance ? Number(reserved->count >> kMiBShift) : std::nullopt;
}

Number last_xid(const Seat& seat) {
  const auto& seen = seat.device->account->xid_seen;
  const auto last = std::max_element(seen.begin(), seen.end(), [](auto& a, auto& b) { return a.second < b.second; });
  return last == seen.end() ? std::nullopt : Number(last->first);
}

// The older exporter showed 0 before the first; the newer one has no series.
Number last_xid_or_none(const Seat& seat) {
  const Number xid = last_xid(seat);
  return xid ? xid : Number(uint64_t{0});
}

// An instance has its own monitors.
const Activity* activity_of(const Seat& seat) {
  const DeviceSample& sample = sample_of(seat);
  if (!seat.instance) return sample.activity ? &*sample.activity : nullptr;
  const auto found = sample.instance_activity.find(seat.instance->id.gpu_instance);
  return found == sample.instance_activity.end() ? nullptr : &found->second;
}

Number share(const std::optional<Ratio>& ratio) {
  return ratio ? Number(std::round(ratio->value * 1e6) / 1e6) : std::nullopt;
}

Number graphics_active(const Seat& seat) {
  const Activity* activity = activity_of(seat);
  return activity ? share(activity->graphics) : std::nullopt;
}

template <Activity::Part kPart>
Number part_active(const Seat& seat) {
  const Activity* activity = activity_of(seat);
  return activity ? share(activity->parts[kPart]) : std::nullopt;
}

template <auto kMember>
Number pcie_kilobytes(const Seat& seat) {
  const std::optional<double>& rate = sample_of(seat).traffic.*kMember;
  return rate ? Number(static_cast<uint64_t>(*rate / 1000)) : std::nullopt;
}

template <auto kMember>
Number monitored_pcie_bytes(const Seat& seat) {
  const Activity* activity = activity_of(seat);
  if (!activity) return std::nullopt;
  const std::optional<double>& rate = activity->traffic.*kMember;
  return rate ? Number(static_cast<uint64_t>(*rate)) : std::nullopt;
}

// DCGM's unit, KiB over 1000.
Number nvlink_rate(const Seat& seat) {
  const Traffic& traffic = sample_of(seat).traffic;
  if (!traffic.nvlink_sent || !traffic.nvlink_received) return std::nullopt;
  return Number(static_cast<uint64_t>((*traffic.nvlink_sent + *traffic.nvlink_received) / 1024 / 1000));
}

constexpr auto kCounter = MetricType::kCounter;
constexpr auto kGauge = MetricType::kGauge;

constexpr DcgmFamily kLegacy[] = {
    {"dcgm_app_clock_violation", kCounter, "Throttling duration due to application clocks (in ns).",
     vital<Vital::kAppClockViolation>},
    {"dcgm_board_limit_violation", kCounter, "Throttling duration due to the board's limits (in ns).",
     vital<Vital::kBoardLimitViolation>},
    {"dcgm_dec_utilization", kGauge, "Decoder utilization (in %).", vital<Vital::kDecoder>},
    {"dcgm_ecc_dbe_aggregate_total", kCounter, "Double-bit ECC errors in the GPU's life.",
     vital<Vital::kEccUncorrectedAggregate>},
    {"dcgm_ecc_dbe_volatile_total", kCounter, "Double-bit ECC errors since the driver was loaded.",
     vital<Vital::kEccUncorrectedVolatile>},
    {"dcgm_ecc_sbe_aggregate_total", kCounter, "Single-bit ECC errors in the GPU's life.",
     vital<Vital::kEccCorrectedAggregate>},
    {"dcgm_ecc_sbe_volatile_total", kCounter, "Single-bit ECC errors since the driver was loaded.",
     vital<Vital::kEccCorrectedVolatile>},
    {"dcgm_enc_utilization", kGauge, "Encoder utilization (in %).", vital<Vital::kEncoder>},
    {"dcgm_fb_free", kGauge, "Framebuffer memory free (in MiB).", memory_free},
    {"dcgm_fb_used", kGauge, "Framebuffer memory used (in MiB); on a shared GPU the pod's part.", memory_used, true},
    {"dcgm_fi_prof_dram_active", kGauge, "Share of cycles the memory interface was busy (0 to 1).",
     part_active<Activity::kDram>},
    {"dcgm_fi_prof_gr_engine_active", kGauge, "Share of time any kernel ran (0 to 1).", graphics_active},
    {"dcgm_fi_prof_pcie_rx_bytes", kGauge, "PCIe bytes received per second.",
     monitored_pcie_bytes<&Traffic::pcie_received>},
    {"dcgm_fi_prof_pcie_tx_bytes", kGauge, "PCIe bytes sent per second.", monitored_pcie_bytes<&Traffic::pcie_sent>},
    {"dcgm_fi_prof_pipe_tensor_active", kGauge, "Share of cycles the tensor cores were busy (0 to 1).",
     part_active<Activity::kTensor>},
    {"dcgm_fi_prof_sm_active", kGauge, "Share of cycles a multiprocessor had a warp (0 to 1).",
     part_active<Activity::kSm>},
    {"dcgm_fi_prof_sm_occupancy", kGauge, "Resident warps as a share of the maximum (0 to 1).",
     part_active<Activity::kOccupancy>},
    {"dcgm_gpu_temp", kGauge, "GPU temperature (in C).", gauge<&DeviceSample::temperature_celsius>},
    {"dcgm_gpu_utilization", kGauge, "GPU utilization (in %).", percent<&DeviceSample::gpu_utilization>},
    {"dcgm_low_util_violation", kCounter, "Throttling duration due to low utilization (in ns).",
     vital<Vital::kLowUtilizationViolation>},
    {"dcgm_mem_copy_utilization", kGauge, "Memory utilization (in %).", percent<&DeviceSample::memory_utilization>},
    {"dcgm_memory_clock", kGauge, "Memory clock frequency (in MHz).", vital<Vital::kMemoryClock>},
    {"dcgm_memory_temp", kGauge, "Memory temperature (in C).", vital<Vital::kMemoryTemperature>},
    {"dcgm_nvlink_bandwidth_total", kGauge, "NVLink traffic of all links, both directions (in 1000 KiB/s).",
     nvlink_rate},
    {"dcgm_nvlink_data_crc_error_count_total", kCounter, "NVLink CRC errors in data.", vital<Vital::kNvlinkDataErrors>},
    {"dcgm_nvlink_flit_crc_error_count_total", kCounter, "NVLink CRC errors in flow control.",
     vital<Vital::kNvlinkFlitErrors>},
    {"dcgm_nvlink_recovery_error_count_total", kCounter, "NVLink recoveries.", vital<Vital::kNvlinkRecoveryErrors>},
    {"dcgm_nvlink_replay_error_count_total", kCounter, "NVLink replays.", vital<Vital::kNvlinkReplayErrors>},
    {"dcgm_pcie_replay_counter", kCounter, "PCIe replays.", vital<Vital::kPcieReplays>},
    {"dcgm_pcie_rx_throughput", kGauge, "PCIe data received (in KB/s).", pcie_kilobytes<&Traffic::pcie_received>},
    {"dcgm_pcie_tx_throughput", kGauge, "PCIe data sent (in KB/s).", pcie_kilobytes<&Traffic::pcie_sent>},
    {"dcgm_power_usage", kGauge, "Power draw (in W); on a shared GPU the pod's part.", power, true},
    {"dcgm_power_violation", kCounter, "Throttling duration due to the power limit (in ns).",
     vital<Vital::kPowerViolation>},
    {"dcgm_reliability_violation", kCounter, "Throttling duration due to reliability (in ns).",
     vital<Vital::kReliabilityViolation>},
    {"dcgm_retired_pages_dbe", kCounter, "Pages retired for double-bit errors.", vital<Vital::kRetiredPagesDoubleBit>},
    {"dcgm_retired_pages_pending", kGauge, "1 while pages wait to be retired, else 0.",
     vital<Vital::kRetiredPagesPending>},
    {"dcgm_retired_pages_sbe", kCounter, "Pages retired for single-bit errors.", vital<Vital::kRetiredPagesSingleBit>},
    {"dcgm_sm_clock", kGauge, "SM clock frequency (in MHz).", gauge<&DeviceSample::sm_clock_mhz>},
    {"dcgm_sync_boost_violation", kCounter, "Throttling duration due to sync boost (in ns).",
     vital<Vital::kSyncBoostViolation>},
    {"dcgm_thermal_violation", kCounter, "Throttling duration due to heat (in ns).", vital<Vital::kThermalViolation>},
    {"dcgm_total_energy_consumption", kCounter,
     "Energy (in mJ). With pod labels: the pod's part. Without: the rest of the GPU's counter.", nullptr, true},
    {"dcgm_xid_errors", kGauge, "Number of the last Xid error; 0: none.", last_xid_or_none},
};

constexpr DcgmFamily kModern[] = {
    {"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", kCounter, "Rows remapped for correctable errors.",
     vital<Vital::kRemappedRowsCorrectable>},
    {"DCGM_FI_DEV_DEC_UTIL", kGauge, "Decoder utilization (in %).", vital<Vital::kDecoder>},
    {"DCGM_FI_DEV_ENC_UTIL", kGauge, "Encoder utilization (in %).", vital<Vital::kEncoder>},
    {"DCGM_FI_DEV_FB_FREE", kGauge, "Framebuffer memory free (in MiB).", memory_free},
    {"DCGM_FI_DEV_FB_RESERVED", kGauge, "Framebuffer memory reserved by the driver (in MiB).", memory_reserved},
    {"DCGM_FI_DEV_FB_USED", kGauge, "Framebuffer memory used (in MiB); on a shared GPU the pod's part.", memory_used,
     true},
    {"DCGM_FI_DEV_GPU_TEMP", kGauge, "GPU temperature (in C).", gauge<&DeviceSample::temperature_celsius>},
    {"DCGM_FI_DEV_GPU_UTIL", kGauge, "GPU utilization (in %).", percent<&DeviceSample::gpu_utilization>},
    {"DCGM_FI_DEV_MEMORY_TEMP", kGauge, "Memory temperature (in C).", vital<Vital::kMemoryTemperature>},
    {"DCGM_FI_DEV_MEM_CLOCK", kGauge, "Memory clock frequency (in MHz).", vital<Vital::kMemoryClock>},
    {"DCGM_FI_DEV_MEM_COPY_UTIL", kGauge, "Memory utilization (in %).", percent<&DeviceSample::memory_utilization>},
    {"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", kGauge, "NVLink traffic of all links, both directions (in 1000 KiB/s).",
     nvlink_rate},
    {"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", kCounter, "PCIe replays.", vital<Vital::kPcieReplays>},
    {"DCGM_FI_DEV_POWER_USAGE", kGauge, "Power draw (in W); on a shared GPU the pod's part.", power, true},
    {"DCGM_FI_DEV_ROW_REMAP_FAILURE", kGauge, "1 when a row could not be remapped, else 0.",
     vital<Vital::kRemapFailed>},
    {"DCGM_FI_DEV_SM_CLOCK", kGauge, "SM clock frequency (in MHz).", gauge<&DeviceSample::sm_clock_mhz>},
    {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", kCounter,
     "Energy (in mJ). With pod labels: the pod's part. Without: the rest of the GPU's counter.", nullptr, true},
    {"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", kCounter, "Rows remapped for uncorrectable errors.",
     vital<Vital::kRemappedRowsUncorrectable>},
    {"DCGM_FI_DEV_XID_ERRORS", kGauge, "Number of the last Xid error. Absent before the first.", last_xid},
    {"DCGM_FI_PROF_DRAM_ACTIVE", kGauge, "Share of cycles the memory interface was busy (0 to 1).",
     part_active<Activity::kDram>},
    {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", kGauge, "Share of time any kernel ran (0 to 1).", graphics_active},
    {"DCGM_FI_PROF_PCIE_RX_BYTES", kGauge, "PCIe bytes received per second.",
     monitored_pcie_bytes<&Traffic::pcie_received>},
    {"DCGM_FI_PROF_PCIE_TX_BYTES", kGauge, "PCIe bytes sent per second.", monitored_pcie_bytes<&Traffic::pcie_sent>},
    {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", kGauge, "Share of cycles the tensor cores were busy (0 to 1).",
     part_active<Activity::kTensor>},
};

}  // namespace

std::span<const DcgmFamily> legacy_families() {
  return kLegacy;
}

std::span<const DcgmFamily> modern_families() {
  return kModern;
}

}  // namespace gpuledger::expose
