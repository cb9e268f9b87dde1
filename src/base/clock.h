#pragma once

#include <chrono>

namespace gpuledger {

using Nanoseconds = std::chrono::nanoseconds;

// Both clocks read at one moment: steady for intervals, wall (since 1970) for what people and the driver see.
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
    return {std::chrono::steady_clock::now().time_since_epoch(),
            std::chrono::duration_cast<Nanoseconds>(std::chrono::system_clock::now().time_since_epoch())};
  }
};

}  // namespace gpuledger
