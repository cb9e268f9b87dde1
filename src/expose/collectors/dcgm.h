// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "expose/dcgm_seats.h"
#include "expose/family_sink.h"

namespace gpuledger::expose {

// A metric of /gpu/metrics. Names, units and meaning are those of DCGM's exporters, old and new. For the types that
// differ see docs/decisions/0011-dcgm-names.md.
struct DcgmFamily {
  std::string_view name;
  MetricType type;
  std::string_view help;
  std::optional<Value> (*read)(const Seat& seat);  // null: the energy, which is separate
  bool adds_up = false;                            // the sum over the seats is the device's value
};

// Sorted by name.
std::span<const DcgmFamily> legacy_families();  // dcgm_*
std::span<const DcgmFamily> modern_families();  // DCGM_FI_*

}  // namespace gpuledger::expose
