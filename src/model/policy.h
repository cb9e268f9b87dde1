// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "base/clock.h"
#include "base/units.h"

namespace gpuledger {

enum class Attribution { kAdaptive, kUtilization, kMeasuredOnly };
// Who pays for idle and resident watts while processes exist.
enum class StaticPower { kProportional, kEqual, kSeparate };

// The rules the books are kept by: settings that the attribute stage obeys.
struct BookingRules {
  Attribution attribution = Attribution::kAdaptive;
  StaticPower static_power = StaticPower::kProportional;
  std::optional<Power> idle_power;  // empty: learned
  Nanoseconds sample_interval = std::chrono::seconds(1);
  Nanoseconds idle_interval = std::chrono::seconds(5);
  Nanoseconds retention = std::chrono::minutes(5);
  Nanoseconds owner_retention = std::chrono::hours(24);
  // Of all GPUs together, the newest: however fast processes or pods come and go, the books stay this large.
  size_t most_exited_processes = 1000;
  size_t most_ended_owners = 1000;
};

}  // namespace gpuledger
