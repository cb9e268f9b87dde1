// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "field_values.h"

// Field values: limits, temperatures, errors, throttling.
namespace gpuledger::sim {

using namespace nvml;

namespace {

enum OtherField : unsigned {
  kFieldEnergy = 83,
  kFieldPowerAverage = 185,
  kFieldPowerInstant = 186,
  kFieldPowerMinLimit = 187,
  kFieldPowerMaxLimit = 188,
  kFieldPowerDefaultLimit = 189,
  kFieldPowerCurrentLimit = 190,
  kFieldEnergyAlias = 191,
  kFieldPowerRequestedLimit = 192,
};
constexpr unsigned kFieldNvlinkSpeed = 90;
constexpr unsigned kFieldNvlinkCount = 91;
constexpr unsigned kFieldNvswitchLinks = 147;
constexpr unsigned kTuring = 6;
constexpr unsigned kGeForce = 5;
constexpr unsigned kNvlinkMegabytes = 25781;  // a second and link

Return small(FieldValue* field, double value) {
  field->valueType = kValueUnsignedInt;
  field->value.uiVal = static_cast<unsigned>(std::lround(value));
  return kSuccess;
}

Return large(FieldValue* field, uint64_t value) {
  field->valueType = kValueUnsignedLongLong;
  field->value.ullVal = value;
  return kSuccess;
}

Return if_there(bool there, FieldValue* field) {
  return there ? large(field, 0) : kNotSupported;
}

Return read_power(const Gpu& gpu, FieldValue* field) {
  const double limit_mw = gpu.spec().model.limit_watts * 1000;
  switch (field->fieldId) {
    case kFieldEnergy:
    case kFieldEnergyAlias:
      return gpu.spec().model.energy_counter ? large(field, gpu.state().counter_mj) : kNotSupported;
    case kFieldPowerAverage:
      return gpu.spec().model.averages_power ? small(field, gpu.state().average_mw) : kNotSupported;
    case kFieldPowerInstant: return small(field, gpu.state().instant_mw);
    case kFieldPowerMinLimit: return small(field, limit_mw / 2);
    case kFieldPowerMaxLimit:
    case kFieldPowerDefaultLimit:
    case kFieldPowerCurrentLimit:
    case kFieldPowerRequestedLimit: return small(field, limit_mw);
    default: return kNotSupported;
  }
}

// The links have no traffic, as in GPM.
Return read_nvlink(const Node& node, const Gpu& gpu, FieldValue* field) {
  const GpuModel& model = gpu.spec().model;
  if (field->fieldId == kFieldNvswitchLinks) return small(field, active_nvlinks(node, gpu));
  if (model.nvlinks == 0) return kNotSupported;
  switch (field->fieldId) {
    case kFieldNvlinkSpeed: return active_nvlinks(node, gpu) ? small(field, kNvlinkMegabytes) : kNotSupported;
    case kFieldNvlinkCount: return small(field, model.nvlinks);
    case kFieldNvlinkSent:
    case kFieldNvlinkReceived:
      if (field->scopeId != kScopeAllLinks && field->scopeId >= model.nvlinks) return kInvalidArgument;
      return large(field, 0);
    default: return large(field, 0);
  }
}

Return read_healthy(const Node& node, const Gpu& gpu, FieldValue* field) {
  const GpuModel& model = gpu.spec().model;
  const unsigned id = field->fieldId;
  switch (id) {
    case kFieldMemoryTemperature: return model.hbm ? small(field, shown_temperature(gpu) + 6) : kNotSupported;
    case kFieldPowerViolation: return large(field, gpu.state().capped_ns);
    case kFieldPcieReplays: return small(field, 0);
    case kFieldEccCorrectedVolatile:
    case kFieldEccUncorrectedVolatile:
    case kFieldEccCorrectedAggregate:
    case kFieldEccUncorrectedAggregate: return if_there(has_ecc(model), field);
    case kFieldRetiredSingleBit:
    case kFieldRetiredDoubleBit:
    case kFieldRetiredPending: return if_there(has_ecc(model) && !remaps_rows(model), field);
    case kFieldRemappedCorrectable:
    case kFieldRemappedUncorrectable:
    case kFieldRemapPending:
    case kFieldRemapFailed: return if_there(remaps_rows(model), field);
    case kFieldNvlinkFlitErrors:
    case kFieldNvlinkDataErrors:
    case kFieldNvlinkReplayErrors:
    case kFieldNvlinkRecoveryErrors:
    case kFieldNvlinkSpeed:
    case kFieldNvlinkCount:
    case kFieldNvswitchLinks:
    case kFieldNvlinkSent:
    case kFieldNvlinkReceived: return read_nvlink(node, gpu, field);
    default:
      if (id >= kFieldPowerViolation && id <= kFieldAppClockViolation) return large(field, 0);
      return read_power(gpu, field);
  }
}

}  // namespace

// A scenario's value replaces the healthy one, but only for fields that the GPU has.
Return read_field(Node& node, const Gpu& gpu, unsigned index, FieldValue* field) {
  const Return result = read_healthy(node, gpu, field);
  if (result != kSuccess) return result;
  for (const FieldChange& change : node.scenario().field_changes) {
    if (change.gpu != index || change.field != field->fieldId || change.at > node.now()) continue;
    if (field->valueType == kValueUnsignedInt) {
      field->value.uiVal = static_cast<unsigned>(change.value);
    } else {
      field->value.ullVal = change.value;
    }
  }
  return kSuccess;
}

Return read_count(Node& node, const Target& target, unsigned id, unsigned long long* out) {
  FieldValue field{};
  field.fieldId = id;
  const Return result = read_field(node, *target.gpu, target.index, &field);
  if (result == kSuccess) *out = field.valueType == kValueUnsignedInt ? field.value.uiVal : field.value.ullVal;
  return result;
}

unsigned active_nvlinks(const Node& node, const Gpu& gpu) {
  unsigned same = 0;
  for (const GpuSpec& other : node.scenario().gpus) same += other.model.name == gpu.spec().model.name;
  return same > 1 ? gpu.spec().model.nvlinks : 0;
}

bool has_ecc(const GpuModel& model) {
  return model.brand != kGeForce;
}

bool remaps_rows(const GpuModel& model) {
  return has_ecc(model) && model.architecture > kTuring;
}

}  // namespace gpuledger::sim

namespace gpuledger::nvml {

using namespace sim;

extern "C" {

Return nvmlDeviceGetFieldValues(Device device, int count, FieldValue* values) {
  return on_device(__func__, device, [&](Node& node, Target& target) {
    if (target.instance) return kNotSupported;
    if (!values || count < 0) return kInvalidArgument;
    for (int i = 0; i < count; ++i) {
      values[i].timestamp = static_cast<long long>(node.wall_micros(node.now()));
      values[i].latencyUsec = 0;
      values[i].nvmlReturn = read_field(node, *target.gpu, target.index, &values[i]);
    }
    return kSuccess;
  });
}

}  // extern "C"

}  // namespace gpuledger::nvml
