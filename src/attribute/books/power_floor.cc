// SPDX-License-Identifier: Apache-2.0
#include "attribute/books/power_floor.h"

#include <algorithm>
#include <vector>

namespace gpuledger::attribute {
namespace {

constexpr size_t kWindows = 60;
// The counter moves every 100 ms: in windows below half a second its steps distort the power.
constexpr Nanoseconds kShortest = std::chrono::milliseconds(500);

}  // namespace

// Starts with as many equal windows as there were, so that new ones do not move the median faster than before.
PowerFloor::PowerFloor(const Memory& memory) : windows_(std::min(memory.windows, kWindows), memory.value) {}

void PowerFloor::observe(Energy energy, Nanoseconds time) {
  if (time < kShortest) return;
  windows_.push_back(power_of(energy, time));
  if (windows_.size() > kWindows) windows_.pop_front();
}

std::optional<Power> PowerFloor::value() const {
  if (windows_.empty()) return std::nullopt;
  std::vector<Power> sorted(windows_.begin(), windows_.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace gpuledger::attribute
