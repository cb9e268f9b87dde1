#pragma once

#include <optional>

#include "base/clock.h"
#include "base/units.h"

namespace gpuledger::attribute {

// The lowest mean power of a kind of window (nobody there; somebody there but nobody working) over the last
// ten to twenty minutes. The lowest, because after work the clocks and the heat need seconds to go down;
// of the recent past, because the floor moves with temperature.
class PowerFloor {
 public:
  void observe(Energy energy, Nanoseconds time, Nanoseconds now);
  std::optional<Power> value() const;

 private:
  std::optional<Power> current_;
  std::optional<Power> previous_;
  std::optional<Nanoseconds> began_;
};

}  // namespace gpuledger::attribute
