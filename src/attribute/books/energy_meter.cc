// SPDX-License-Identifier: Apache-2.0
#include "attribute/books/energy_meter.h"

#include <algorithm>

namespace gpuledger::attribute {
namespace {

constexpr uint32_t kReadingsOfACourse = 3;
// A longer time is an error of a clock, and its energy would overflow.
constexpr Nanoseconds kLongestStep = std::chrono::hours(24 * 365 * 10);

bool goes_on(Energy from, Energy to, Nanoseconds time, Power most) {
  return to >= from && to - from <= energy_of(most, std::min(time, kLongestStep) + kCounterRefresh);
}

}  // namespace

EnergyMeter::EnergyMeter(std::optional<Energy> counter, std::optional<Power> power, std::optional<Course> doubted,
                         Timestamp at)
    : counter_(counter), power_(power), at_(at), doubted_(doubted) {
  if (doubted_) doubted_->at = at.steady;  // earlier than it was: it may have risen by more
}

std::optional<EnergyMeter::Step> EnergyMeter::read(const DeviceSample& sample, Timestamp at, Power most) {
  refused_ = false;
  if (!at_) return std::nullopt;
  const Nanoseconds time = at.steady - at_->steady;
  if (time <= Nanoseconds(0)) return std::nullopt;

  if (sample.energy_counter && counter_) return read_counter(*sample.energy_counter, at.steady, most);
  if (sample.description->energy_source == EnergySource::kPowerIntegral && sample.power && power_) {
    const Power mean = Power::milliwatts((power_->milliwatts() + sample.power->milliwatts()) / 2);
    return Step{energy_of(mean, time), time, false};
  }
  return std::nullopt;
}

std::optional<EnergyMeter::Step> EnergyMeter::read_counter(Energy value, Nanoseconds at, Power most) {
  const Nanoseconds time = at - at_->steady;
  if (goes_on(*counter_, value, time, most)) {
    doubted_.reset();
    return Step{value - *counter_, time, false};
  }
  if (!doubted_ || !goes_on(doubted_->last, value, at - doubted_->at, most)) doubted_ = Course{value, value, 0, at};
  // A value that stands still is not counting, however often it is read.
  if (doubted_->readings == 0 || value > doubted_->last) ++doubted_->readings;
  doubted_->last = value;
  doubted_->at = at;
  refused_ = doubted_->readings < kReadingsOfACourse;
  if (refused_) return std::nullopt;
  // After a reset the value is the energy since then. It is not a reset if the GPU cannot have drawn that much.
  const bool reset = value < *counter_ && goes_on(Energy(), value, time, most);
  return Step{reset ? value : value - doubted_->first, time, true};
}

bool EnergyMeter::close(const DeviceSample& sample, Timestamp at) {
  const bool counts = sample.energy_counter.has_value();
  const bool integrates = sample.description->energy_source == EnergySource::kPowerIntegral && sample.power;
  const bool older = at_ && at.steady <= at_->steady;
  if (refused_ || older || (!counts && !integrates)) return false;
  counter_ = sample.energy_counter;
  power_ = sample.power;
  at_ = at;
  doubted_.reset();
  return true;
}

}  // namespace gpuledger::attribute
