// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/clock.h"
#include "base/units.h"
#include "model/sample.h"

namespace gpuledger::attribute {

// Energy since the last sample, from the hardware counter or, without one, from power.
class EnergyMeter {
 public:
  struct Step {
    Energy energy;
    Nanoseconds time{0};     // what the energy covers
    bool restarted = false;  // the counter restarted: a part of the energy is not known
  };

  EnergyMeter() = default;
  // Continues from the last reading before a restart of the program.
  EnergyMeter(std::optional<Energy> counter, std::optional<Power> power, Timestamp at)
      : counter_(counter), power_(power), at_(at) {}

  // Empty: nothing to book yet (first sample, or no value), and the next step covers this time too.
  // most: the highest power of the GPU, which tells a restarted counter from a broken one.
  std::optional<Step> read(const DeviceSample& sample, Timestamp at, std::optional<Power> most) const;
  // Ends the step of read(). False: the sample has no value, and the step goes on.
  bool close(const DeviceSample& sample, Timestamp at);

  // The last reading, at the start of the current step.
  std::optional<Energy> counter() const { return counter_; }
  std::optional<Power> power() const { return power_; }
  std::optional<Timestamp> at() const { return at_; }

 private:
  std::optional<Energy> counter_;
  std::optional<Power> power_;
  std::optional<Timestamp> at_;
};

}  // namespace gpuledger::attribute
