// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/clock.h"
#include "base/units.h"
#include "model/sample.h"

namespace gpuledger::attribute {

// A counter that is refreshed every 100 ms may show up to that much more time than has passed.
inline constexpr Nanoseconds kCounterRefresh = std::chrono::milliseconds(200);

// Energy since the last reading that was believed, from the hardware counter or, without one, from power.
//
// A value that the GPU cannot have reached since then is in doubt: it is false, or the counter has a new course, as
// after a reload of the driver, when it starts at 0. Three readings that go on from each other are a course. Until then
// the step goes on, so a counter that comes back to its old course loses nothing.
class EnergyMeter {
 public:
  struct Step {
    Energy energy;
    Nanoseconds time{0};     // what the energy covers
    bool restarted = false;  // the counter has a new course: a part of the energy is not known
  };

  // The readings in doubt, as far as they go on from each other.
  struct Course {
    Energy first;
    Energy last;
    uint32_t readings = 0;  // all different
    Nanoseconds at{0};      // of the last, steady; not kept over a restart of the program
  };

  EnergyMeter() = default;
  // Continues from the last reading before a restart of the program.
  EnergyMeter(std::optional<Energy> counter, std::optional<Power> power, std::optional<Course> doubted, Timestamp at);

  // Empty: nothing to book yet (first sample, no value, or one in doubt), and the next step covers this time too.
  // most: more than the GPU can draw.
  std::optional<Step> read(const DeviceSample& sample, Timestamp at, Power most);
  // The value of the last read() is in doubt.
  bool refused() const { return refused_; }
  // Ends the step of read(). False: the sample has no value that is believed, and the step goes on.
  bool close(const DeviceSample& sample, Timestamp at);

  // The last reading, at the start of the current step.
  std::optional<Energy> counter() const { return counter_; }
  std::optional<Power> power() const { return power_; }
  std::optional<Timestamp> at() const { return at_; }
  const std::optional<Course>& doubted() const { return doubted_; }

 private:
  std::optional<Step> read_counter(Energy value, Nanoseconds at, Power most);

  std::optional<Energy> counter_;
  std::optional<Power> power_;
  std::optional<Timestamp> at_;
  std::optional<Course> doubted_;
  bool refused_ = false;
};

}  // namespace gpuledger::attribute
