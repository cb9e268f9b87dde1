// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "model/vitals.h"

namespace gpuledger {

// The hardware counters among a GPU's vitals, without single false readings. A value that fell, or rose by more than
// any counter does, is believed when the next reading goes on from it; until then the last one stays.
class SteadyCounters {
 public:
  // Call it once for each reading. False: the value was in doubt, and is now the last one.
  bool hold(Vital vital, std::optional<uint64_t>& value);

 private:
  struct Course {
    uint64_t believed = 0;
    std::optional<uint64_t> doubted;
  };
  std::array<std::optional<Course>, kVitalCount> courses_{};
};

}  // namespace gpuledger
