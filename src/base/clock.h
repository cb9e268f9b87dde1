// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>

namespace gpuledger {

using Nanoseconds = std::chrono::nanoseconds;

inline int64_t micros(Nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

// Both clocks at one moment: steady for intervals, wall (since 1970) for people and the driver. Steady time goes on
// while the machine is suspended, as the GPU's energy may.
struct Timestamp {
  Nanoseconds steady{0};
  Nanoseconds wall{0};
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Timestamp now() const = 0;
};

class SystemClock final : public Clock {
 public:
  Timestamp now() const override {
    timespec boot{};
    clock_gettime(CLOCK_BOOTTIME, &boot);
    return {std::chrono::seconds(boot.tv_sec) + Nanoseconds(boot.tv_nsec),
            std::chrono::duration_cast<Nanoseconds>(std::chrono::system_clock::now().time_since_epoch())};
  }
};

}  // namespace gpuledger
