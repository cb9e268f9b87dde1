// SPDX-License-Identifier: Apache-2.0
#include "sample/switch_trace/gpu_clock.h"

#include <algorithm>
#include <cmath>

namespace gpuledger::switch_trace {
namespace {

constexpr double kLargestRate = 200e-6;  // such clocks are accurate to 100 ppm
constexpr Nanoseconds kLargestError = std::chrono::milliseconds(20);
constexpr Nanoseconds kShortestForRate = std::chrono::seconds(2);
// Much longer than the time between two comparisons, and short enough to be booked quickly.
constexpr Nanoseconds kFarthestAhead = std::chrono::minutes(10);

}  // namespace

bool GpuClock::compare(const ClockPair& pair) {
  const bool first = !last_;
  const Nanoseconds error = first ? Nanoseconds(0) : pair.steady - to_steady(pair.gpu);
  const bool jumped = std::chrono::abs(error) > kLargestError;
  if (first || jumped) {
    rate_ = 0;
  } else if (pair.gpu - last_->gpu >= kShortestForRate) {
    const auto gained = static_cast<double>(((pair.steady - last_->steady) - (pair.gpu - last_->gpu)).count());
    rate_ = std::clamp(gained / static_cast<double>((pair.gpu - last_->gpu).count()), -kLargestRate, kLargestRate);
  }
  last_ = pair;
  return !jumped;
}

Nanoseconds GpuClock::to_steady(Nanoseconds gpu) const {
  const Nanoseconds since = gpu - last_->gpu;
  return last_->steady + since + Nanoseconds(std::llround(static_cast<double>(since.count()) * rate_));
}

bool GpuClock::has_happened(uint64_t gpu) const {
  return gpu <= static_cast<uint64_t>((last_->gpu + kFarthestAhead).count());
}

}  // namespace gpuledger::switch_trace
