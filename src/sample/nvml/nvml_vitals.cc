// SPDX-License-Identifier: Apache-2.0
#include "sample/nvml/nvml_vitals.h"

#include <array>
#include <cmath>

namespace gpuledger::nvml {

namespace {

struct Field {
  FieldId id;
  Vital vital;
  bool slow;
  unsigned scope = 0;
};

// The thermal counter takes 1 ms on an H200 and the PCIe replays 0.4 ms, everything else together 0.03 ms. Values that
// hardly ever change are not read every second.
constexpr Field kFields[] = {
    {kFieldMemoryTemperature, Vital::kMemoryTemperature, false},
    {kFieldPowerViolation, Vital::kPowerViolation, false},
    {kFieldSyncBoostViolation, Vital::kSyncBoostViolation, false},
    {kFieldBoardLimitViolation, Vital::kBoardLimitViolation, false},
    {kFieldLowUtilizationViolation, Vital::kLowUtilizationViolation, false},
    {kFieldReliabilityViolation, Vital::kReliabilityViolation, false},
    {kFieldAppClockViolation, Vital::kAppClockViolation, false},
    {kFieldThermalViolation, Vital::kThermalViolation, true},
    {kFieldPcieReplays, Vital::kPcieReplays, true},
    {kFieldEccCorrectedVolatile, Vital::kEccCorrectedVolatile, true},
    {kFieldEccUncorrectedVolatile, Vital::kEccUncorrectedVolatile, true},
    {kFieldEccCorrectedAggregate, Vital::kEccCorrectedAggregate, true},
    {kFieldEccUncorrectedAggregate, Vital::kEccUncorrectedAggregate, true},
    {kFieldRetiredSingleBit, Vital::kRetiredPagesSingleBit, true},
    {kFieldRetiredDoubleBit, Vital::kRetiredPagesDoubleBit, true},
    {kFieldRetiredPending, Vital::kRetiredPagesPending, true},
    {kFieldRemappedCorrectable, Vital::kRemappedRowsCorrectable, true},
    {kFieldRemappedUncorrectable, Vital::kRemappedRowsUncorrectable, true},
    {kFieldRemapPending, Vital::kRemapPending, true},
    {kFieldRemapFailed, Vital::kRemapFailed, true},
    {kFieldNvlinkFlitErrors, Vital::kNvlinkFlitErrors, true},
    {kFieldNvlinkDataErrors, Vital::kNvlinkDataErrors, true},
    {kFieldNvlinkReplayErrors, Vital::kNvlinkReplayErrors, true},
    {kFieldNvlinkRecoveryErrors, Vital::kNvlinkRecoveryErrors, true},
    {kFieldNvlinkSent, Vital::kNvlinkSent, true, kScopeAllLinks},
    {kFieldNvlinkReceived, Vital::kNvlinkReceived, true, kScopeAllLinks},
};

constexpr unsigned kHottest = 200;  // higher sensor values are not temperatures

std::optional<uint64_t> not_negative(long long value) {
  return value >= 0 ? std::optional(static_cast<uint64_t>(value)) : std::nullopt;
}

std::optional<uint64_t> whole_number(const FieldValue& field) {
  const Value& value = field.value;
  switch (field.valueType) {
    case kValueDouble:
      if (!(value.dVal >= 0 && value.dVal < 1e18)) return std::nullopt;
      return static_cast<uint64_t>(std::llround(value.dVal));
    case kValueUnsignedInt:
      return value.uiVal == kValueNotAvailable32 ? std::nullopt : std::optional(uint64_t{value.uiVal});
    case kValueUnsignedLong: return not_negative(static_cast<long long>(value.ulVal));
    case kValueUnsignedLongLong: return not_negative(static_cast<long long>(value.ullVal));
    case kValueSignedLongLong: return not_negative(value.sllVal);
    case kValueSignedInt: return not_negative(value.siVal);
    case kValueUnsignedShort: return value.usVal;
  }
  return std::nullopt;
}

std::optional<uint64_t> reading_of(const Field& known, const FieldValue& field) {
  if (known.id == kFieldMemoryTemperature) {
    // R545 reports a wrong type for this number.
    return field.value.uiVal <= kHottest ? std::optional<uint64_t>(field.value.uiVal) : std::nullopt;
  }
  return whole_number(field);
}

}  // namespace

template <typename Signature, typename... Arguments>
bool VitalsReader::call(Session& session, const Function<Signature>& function, Device device, Arguments... arguments) {
  if (lost_ != kSuccess || !function || unsupported_calls_.contains(function.name)) return false;
  const Return result = session.call(function, device, arguments...);
  if (result == kSuccess) return true;
  if (means_unsupported(result)) {
    unsupported_calls_.insert(function.name);
    return false;
  }
  session.call.count_failure(result);
  if (means_gpu_gone(result)) lost_ = result;
  return false;
}

void VitalsReader::read_gauges(Session& session, Device device, Vitals& out) {
  const FunctionTable& fn = session.fn;
  unsigned value = 0, period = 0;
  if (call(session, fn.nvmlDeviceGetClockInfo, device, kClockMemory, &value)) out[Vital::kMemoryClock] = value;
  if (call(session, fn.nvmlDeviceGetEncoderUtilization, device, &value, &period) && value <= 100) {
    out[Vital::kEncoder] = value;
  }
  if (call(session, fn.nvmlDeviceGetDecoderUtilization, device, &value, &period) && value <= 100) {
    out[Vital::kDecoder] = value;
  }
  constexpr unsigned kSlowest = 15;  // 32: unknown
  if (call(session, fn.nvmlDeviceGetPerformanceState, device, &value) && value <= kSlowest) {
    out[Vital::kPerformanceState] = value;
  }
  unsigned long long reasons = 0;
  if (call(session, fn.nvmlDeviceGetCurrentClocksEventReasons, device, &reasons) ||
      call(session, fn.nvmlDeviceGetCurrentClocksThrottleReasons, device, &reasons)) {
    out[Vital::kThrottleReasons] = reasons;
  }
}

// The link is slower while the GPU is idle.
void VitalsReader::read_pcie_link(Session& session, Device device) {
  constexpr unsigned kNewest = 32, kWidest = 64;  // higher values are no links
  unsigned value = 0;
  if (call(session, session.fn.nvmlDeviceGetCurrPcieLinkGeneration, device, &value) && value > 0 && value <= kNewest) {
    slow_[Vital::kPcieGeneration] = value;
  }
  if (call(session, session.fn.nvmlDeviceGetCurrPcieLinkWidth, device, &value) && value > 0 && value <= kWidest) {
    slow_[Vital::kPcieWidth] = value;
  }
}

void VitalsReader::read_fan(Session& session, Device device) {
  unsigned percent = 0;
  // A fan may exceed its nominal speed.
  constexpr unsigned kFastest = 200;
  if (call(session, session.fn.nvmlDeviceGetFanSpeed, device, &percent) && percent <= kFastest) {
    slow_[Vital::kFan] = percent;
  }
}

void VitalsReader::read_fields(Session& session, Device device, bool slow, Vitals& out) {
  std::array<FieldValue, std::size(kFields)> values{};
  std::array<const Field*, std::size(kFields)> asked{};
  int count = 0;
  for (const Field& field : kFields) {
    if (field.slow != slow || unsupported_fields_.contains(field.id)) continue;
    values[static_cast<size_t>(count)].fieldId = field.id;
    values[static_cast<size_t>(count)].scopeId = field.scope;
    asked[static_cast<size_t>(count++)] = &field;
  }
  if (count == 0 || !call(session, session.fn.nvmlDeviceGetFieldValues, device, count, values.data())) return;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const Return result = values[i].nvmlReturn;
    if (result == kSuccess) {
      std::optional<uint64_t>& reading = out[asked[i]->vital] = reading_of(*asked[i], values[i]);
      if (!counters_.hold(asked[i]->vital, reading)) ++refused_;
    } else if (means_unsupported(result) || result == kInvalidArgument) {
      unsupported_fields_.insert(asked[i]->id);  // older drivers report an unknown field as a bad argument
    } else {
      session.call.count_failure(result);
      if (means_gpu_gone(result)) lost_ = result;
    }
  }
}

// Each call measures for 20 ms. The byte counters among the fields (197, 198) do not help: they have 32 bits, and a
// busy bus overflows them in a tenth of a second.
void VitalsReader::read_pcie_traffic(Session& session, Device device) {
  unsigned kilobytes = 0;
  if (call(session, session.fn.nvmlDeviceGetPcieThroughput, device, kPcieSent, &kilobytes)) {
    slow_traffic_.pcie_sent = kilobytes * 1000.0;
  }
  if (call(session, session.fn.nvmlDeviceGetPcieThroughput, device, kPcieReceived, &kilobytes)) {
    slow_traffic_.pcie_received = kilobytes * 1000.0;
  }
}

void VitalsReader::step_nvlink_traffic(Nanoseconds now) {
  const auto sent = slow_[Vital::kNvlinkSent];
  const auto received = slow_[Vital::kNvlinkReceived];
  if (!sent || !received) {
    nvlink_.reset();
    return;
  }
  if (nvlink_ && now > nvlink_->at && *sent >= nvlink_->sent && *received >= nvlink_->received) {
    const double kib_to_rate = 1024 / std::chrono::duration<double>(now - nvlink_->at).count();
    slow_traffic_.nvlink_sent = static_cast<double>(*sent - nvlink_->sent) * kib_to_rate;
    slow_traffic_.nvlink_received = static_cast<double>(*received - nvlink_->received) * kib_to_rate;
  }
  nvlink_ = {now, *sent, *received};
}

// The monitors report 0 for missing links.
Traffic VitalsReader::traffic(const std::optional<Activity>& activity) const {
  Traffic traffic = activity ? activity->traffic : Traffic();
  if (!traffic.pcie_sent) traffic.pcie_sent = slow_traffic_.pcie_sent;
  if (!traffic.pcie_received) traffic.pcie_received = slow_traffic_.pcie_received;
  const bool linked = slow_[Vital::kNvlinkSent].has_value();
  if (!linked || !traffic.nvlink_sent) traffic.nvlink_sent = slow_traffic_.nvlink_sent;
  if (!linked || !traffic.nvlink_received) traffic.nvlink_received = slow_traffic_.nvlink_received;
  return traffic;
}

Return VitalsReader::read(Session& session, Device device, const Readings& wanted, bool scan, bool monitored,
                          DeviceSample& out) {
  lost_ = kSuccess;
  refused_ = 0;
  if (!wanted.vitals) return kSuccess;
  if (scan) {
    slow_ = Vitals();
    slow_traffic_ = Traffic();
    read_fan(session, device);
    read_pcie_link(session, device);
    read_fields(session, device, true, slow_);
    if (refused_ == 0) step_nvlink_traffic(session.call.now().steady);
    if (wanted.pcie_traffic && !monitored) read_pcie_traffic(session, device);
  }
  out.vitals = slow_;
  read_gauges(session, device, out.vitals);
  read_fields(session, device, false, out.vitals);
  out.traffic = traffic(out.activity);
  out.refused_readings += refused_;
  return lost_;
}

}  // namespace gpuledger::nvml
