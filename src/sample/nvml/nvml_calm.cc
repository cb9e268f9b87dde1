// SPDX-License-Identifier: Apache-2.0
#include "sample/nvml/nvml_calm.h"

#include <algorithm>

namespace gpuledger::nvml {
namespace {

// Half of the driver's guaranteed utilization history, and the default idle interval.
constexpr Nanoseconds kLongest = std::chrono::seconds(5);
constexpr double kNothing = 0.005;  // monitors' resolution
// The gauge is steady within a few percent. The counter moves every 100 ms, so over a second each end may be off by a
// tenth.
constexpr double kSteadyGauge = 1.05;
constexpr double kSteadyCounter = 1.25;

bool nobody_works(const DeviceSample& sample) {
  const auto works = [](const ProcessSample& process) { return process.use.any(); };
  return sample.utilization == UtilizationState::kKnown && sample.gpu_utilization &&
         sample.gpu_utilization->value <= 0 && std::none_of(sample.processes.begin(), sample.processes.end(), works) &&
         sample.instance_activity.empty();
}

bool above(Power power, Power usual, double factor) {
  return static_cast<double>(power.milliwatts()) > factor * static_cast<double>(usual.milliwatts());
}

// No activity was seen. Copies over the bus show only as memory activity.
bool still(const Activity& activity) {
  const auto rests = [](const std::optional<Ratio>& part) { return !part || part->value < kNothing; };
  return activity.graphics && rests(activity.graphics) &&
         std::all_of(activity.parts.begin(), activity.parts.end(), rests);
}

}  // namespace

void CalmWatch::note_full(const DeviceSample& sample, Nanoseconds now) {
  mean_.reset();
  if (counter_ && sample.energy_counter && *sample.energy_counter >= *counter_) {
    mean_ = power_of(*sample.energy_counter - *counter_, now - at_);
  }
  calm_ = nobody_works(sample) && (!sample.activity || still(*sample.activity)) && mean_ && sample.power &&
          sample.memory_used;
  skipped_at_.reset();
  at_ = now;
  counter_ = sample.energy_counter;
  power_ = sample.power;
  memory_ = sample.memory_used;
  activity_ = sample.activity;
}

bool CalmWatch::holds(const DeviceSample& gauges, Nanoseconds now) const {
  if (!calm_ || now - at_ >= kLongest || now <= at_) return false;
  if (!gauges.gpu_utilization || gauges.gpu_utilization->value > 0 || gauges.memory_used != memory_) return false;
  if (!gauges.power || above(*gauges.power, *power_, kSteadyGauge)) return false;
  if (!gauges.energy_counter || *gauges.energy_counter < *counter_) return false;
  return !above(power_of(*gauges.energy_counter - *counter_, now - at_), *mean_, kSteadyCounter);
}

void CalmWatch::leave_out_calm(Activity& activity, Nanoseconds now) const {
  if (!skipped_at_ || now <= *skipped_at_) return;
  const double factor = static_cast<double>((now - at_).count()) / static_cast<double>((now - *skipped_at_).count());
  const auto stretch = [&](std::optional<Ratio>& part) {
    if (part) part->value = std::min(1.0, part->value * factor);
  };
  stretch(activity.graphics);
  for (auto& part : activity.parts) stretch(part);
}

}  // namespace gpuledger::nvml
