// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "base/clock.h"

namespace gpuledger {

// Stands still until a test moves it. Any thread may read it.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Nanoseconds steady = std::chrono::hours(1), Nanoseconds wall = std::chrono::hours(24 * 365 * 56))
      : steady_(steady.count()), wall_(wall.count()) {}

  Timestamp now() const override { return {Nanoseconds(steady_), Nanoseconds(wall_)}; }

  void set(Timestamp at) {
    steady_ = at.steady.count();
    wall_ = at.wall.count();
  }
  void advance(Nanoseconds by) {
    steady_ += by.count();
    wall_ += by.count();
  }

 private:
  std::atomic<Nanoseconds::rep> steady_;
  std::atomic<Nanoseconds::rep> wall_;
};

}  // namespace gpuledger
