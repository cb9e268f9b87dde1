// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/clock.h"
#include "base/units.h"
#include "model/sample.h"

namespace gpuledger::attribute {

// Energy since the last look, from the hardware counter or, where there is none, from power.
class EnergyMeter {
 public:
  struct Step {
    Energy energy;
    Nanoseconds time{0};     // what the energy covers
    bool restarted = false;  // the counter began anew: a part of the energy is not known
  };

  // Empty: nothing to book yet (first look, or the GPU did not say), and the next step covers this time too.
  // most: the highest power the GPU can draw, which tells a restarted counter from a broken one.
  std::optional<Step> read(const DeviceSample& sample, Timestamp at, std::optional<Power> most) const;
  // Ends the step that read() would give.
  void close(const DeviceSample& sample, Timestamp at);

  // The last reading: where a step that is not ended yet began.
  std::optional<Energy> counter() const { return counter_; }
  std::optional<Timestamp> at() const { return at_; }

 private:
  std::optional<Energy> counter_;
  std::optional<Power> power_;
  std::optional<Timestamp> at_;
};

}  // namespace gpuledger::attribute
