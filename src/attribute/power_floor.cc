#include "attribute/power_floor.h"

#include <algorithm>

namespace gpuledger::attribute {
namespace {

constexpr Nanoseconds kPeriod = std::chrono::minutes(10);
// The counter moves every 100 ms: over less than half a second its steps would pass for power.
constexpr Nanoseconds kShortest = std::chrono::milliseconds(500);

}  // namespace

void PowerFloor::observe(Energy energy, Nanoseconds time, Nanoseconds now) {
  if (time < kShortest) return;
  if (!began_ || now - *began_ >= kPeriod) {
    if (current_) previous_ = current_;
    current_.reset();
    began_ = now;
  }
  const Power power = power_of(energy, time);
  current_ = current_ ? std::min(*current_, power) : power;
}

std::optional<Power> PowerFloor::value() const {
  if (current_ && previous_) return std::min(*current_, *previous_);
  return current_ ? current_ : previous_;
}

}  // namespace gpuledger::attribute
