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
  void observe(Energy energy, Nanoseconds time);
  std::optional<Power> value() const;

 private:
  std::deque<Power> windows_;
};

}  // namespace gpuledger::attribute
