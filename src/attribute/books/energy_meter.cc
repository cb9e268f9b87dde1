// SPDX-License-Identifier: Apache-2.0
#include "attribute/books/energy_meter.h"

namespace gpuledger::attribute {

std::optional<EnergyMeter::Step> EnergyMeter::read(const DeviceSample& sample, Timestamp at,
                                                   std::optional<Power> most) const {
  if (!at_) return std::nullopt;
  const Nanoseconds time = at.steady - at_->steady;
  if (time <= Nanoseconds(0)) return std::nullopt;

  if (sample.energy_counter && counter_) {
    if (*sample.energy_counter >= *counter_) return Step{*sample.energy_counter - *counter_, time, false};
    // The driver was reloaded and counts from zero again. Its value is real unless it is more than the GPU
    // can have drawn since the last sample; then the energy of this step is not known.
    const bool plausible = !most || *sample.energy_counter <= energy_of(*most, time);
    return Step{plausible ? *sample.energy_counter : Energy(), time, true};
  }
  if (sample.description->energy_source == EnergySource::kPowerIntegral && sample.power && power_) {
    const Power mean = Power::milliwatts((power_->milliwatts() + sample.power->milliwatts()) / 2);
    return Step{energy_of(mean, time), time, false};
  }
  return std::nullopt;
}

bool EnergyMeter::close(const DeviceSample& sample, Timestamp at) {
  const bool counts = sample.energy_counter.has_value();
  const bool integrates = sample.description->energy_source == EnergySource::kPowerIntegral && sample.power;
  if (!counts && !integrates) return false;
  counter_ = sample.energy_counter;
  power_ = sample.power;
  at_ = at;
  return true;
}

}  // namespace gpuledger::attribute
