// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "model/sample.h"
#include "sample/dcgm/dcgm_abi.h"
#include "sample/dcgm/dcgm_value.h"

namespace gpuledger::dcgm {

inline constexpr FieldId kFieldDriver = 1;
inline constexpr FieldId kFieldUuid = 54;
inline constexpr FieldId kFieldEnergy = 156;
inline constexpr FieldId kFieldAccounting = 205;
inline constexpr FieldId kFieldGraphicsPids = 220;
inline constexpr FieldId kFieldComputePids = 221;
inline constexpr FieldId kFieldXid = 230;

// Static data.
std::span<const FieldId> description_fields();
void add_to_description(const Reading& reading, DeviceDescription& out);

// Readings.
std::span<const FieldId> device_fields();
void add_to_device(const Reading& reading, DeviceSample& out);

// Performance monitors, through the engine's profiling module. The first list is what we want, the second what every
// GPU with such monitors can count in one pass.
std::span<const FieldId> profiling_fields();
std::span<const FieldId> fewer_profiling_fields();
// False: it had no number.
bool add_to_activity(const Reading& reading, Activity& out);

}  // namespace gpuledger::dcgm
