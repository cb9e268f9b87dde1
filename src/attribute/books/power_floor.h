// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>

#include "base/clock.h"
#include "base/units.h"

namespace gpuledger::attribute {

// Power without work: either without processes, or with quiet processes. The median of the last 60 such windows: robust
// against outliers, and it follows the temperature.
class PowerFloor {
 public:
  struct Memory {
    Power value;
    size_t windows = 0;  // number of windows; 0: not known
  };

  PowerFloor() = default;
  explicit PowerFloor(const Memory& memory);
  Memory memory() const { return {value().value_or(Power()), windows_.size()}; }

  void observe(Energy energy, Nanoseconds time);
  std::optional<Power> value() const;

 private:
  std::deque<Power> windows_;
};

}  // namespace gpuledger::attribute
