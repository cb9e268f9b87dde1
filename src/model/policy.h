// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "base/clock.h"
#include "base/units.h"

namespace gpuledger {

enum class Attribution { kAdaptive, kUtilization, kMeasuredOnly };
// How idle and resident watts are split between processes.
enum class StaticPower { kProportional, kEqual, kSeparate };

// The settings of the attribute stage.
struct BookingRules {
  Attribution attribution = Attribution::kAdaptive;
  StaticPower static_power = StaticPower::kProportional;
  std::optional<Power> idle_power;  // empty: learned
  Nanoseconds sample_interval = std::chrono::seconds(1);
  Nanoseconds idle_interval = std::chrono::seconds(5);
  Nanoseconds retention = std::chrono::minutes(5);
  Nanoseconds owner_retention = std::chrono::hours(24);
  // The newest are kept, of all GPUs together. This bounds the books, however many processes come and go.
  size_t most_exited_processes = 1000;
  size_t most_ended_owners = 1000;
};

}  // namespace gpuledger
