// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>

#include "base/units.h"

namespace gpuledger {

// What no GPU draws. The bound for GPUs without a power limit; a limit above it is no limit.
inline constexpr Power kMostOfAnyGpu = Power::milliwatts(10'000'000);

// A kilowatt for thirty years. A counter above it is no counter, and would overflow the microjoules.
inline constexpr int64_t kMostMillijoules = 1'000'000'000'000'000;

constexpr bool is_power_limit(Power limit) {
  return limit > Power() && limit <= kMostOfAnyGpu;
}

// A reading that needs more than this is false. Real peaks stay far below twice the limit, also on laptops that boost
// above the limit that their driver reports.
constexpr Power most_power(std::optional<Power> limit) {
  if (!limit || !is_power_limit(*limit)) return kMostOfAnyGpu;
  return std::min(Power::milliwatts(limit->milliwatts() * 2), kMostOfAnyGpu);
}

}  // namespace gpuledger
