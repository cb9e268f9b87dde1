// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>

#include "base/clock.h"
#include "base/units.h"

namespace gpuledger::attribute {

// Power in one kind of calm: nobody there, or somebody there but nobody working. The median of the last minute of
// such windows: robust against edges, and moving with the temperature.
class PowerFloor {
 public:
  struct Memory {
    Power value;
    size_t windows = 0;  // how many it is the median of; 0: nothing known
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
