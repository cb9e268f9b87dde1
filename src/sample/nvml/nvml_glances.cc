// SPDX-License-Identifier: Apache-2.0
#include "sample/nvml/nvml_glances.h"

#include <algorithm>
#include <utility>

namespace gpuledger::nvml {
namespace {

// 2.4 seconds of samples every 20 ms, as the driver keeps them.
constexpr unsigned kMostPowerSamples = 256;

// With MIG a process may be on several instances.
std::pair<Pid, std::optional<MigId>> place_of(const ProcessSample& process) {
  return {process.pid, process.mig};
}

// Lists are in this order.
template <typename Processes>
auto first_from(Processes& processes, const std::pair<Pid, std::optional<MigId>>& place) {
  return std::lower_bound(processes.begin(), processes.end(), place,
                          [](const ProcessSample& process, const auto& other) { return place_of(process) < other; });
}

// The mean of the readings: what one reading over the whole step would give.
Activity mean_of(const std::vector<ActivityReading>& readings) {
  const auto mean = [&](auto field) -> std::optional<Ratio> {
    double sum = 0, count = 0;
    for (const ActivityReading& reading : readings) {
      if (const std::optional<Ratio>& value = field(reading.activity)) sum += value->value, ++count;
    }
    return count > 0 ? std::optional(Ratio{sum / count}) : std::nullopt;
  };
  Activity result = readings.back().activity;
  result.graphics = mean([](const Activity& activity) { return activity.graphics; });
  for (size_t part = 0; part < Activity::kParts; ++part) {
    result.parts[part] = mean([part](const Activity& activity) { return activity.parts[part]; });
  }
  return result;
}

}  // namespace

void Glances::reset() {
  *this = Glances();
}

void Glances::note_lists(const std::vector<ProcessSample>& listed, Nanoseconds now) {
  any_ = true;
  std::vector<bool> known(listed.size());
  for (Stay& stay : stays_) {
    if (stay.left) continue;
    const auto at = first_from(listed, place_of(stay.process));
    if (at == listed.end() || place_of(*at) != place_of(stay.process)) {
      stay.left = now;
      continue;
    }
    stay.process = *at;
    known[static_cast<size_t>(at - listed.begin())] = true;
  }
  for (size_t i = 0; i < listed.size(); ++i) {
    if (!known[i]) stays_.push_back({listed[i], now, std::nullopt});
  }
}

void Glances::note_activity(const Activity& activity, std::optional<double> sm_clock_mhz, Nanoseconds now) {
  readings_.push_back({now, activity, sm_clock_mhz});
}

void Glances::hand_on(Session& session, Device device, const std::vector<ProcessSample>& listed, DeviceSample& out) {
  const Nanoseconds now = session.call.now().steady;
  if (!any_) {
    stays_.clear();
    for (const ProcessSample& process : listed) stays_.push_back({process, std::nullopt, std::nullopt});
    return;
  }
  note_lists(listed, now);
  any_ = false;
  if (!readings_.empty()) {
    if (out.activity) note_activity(*out.activity, out.sm_clock_mhz, now);
    out.activity = mean_of(readings_);
  }
  out.activity_readings = std::exchange(readings_, {});
  // The monitors of the whole GPU do not show the work of its instances.
  const bool mig = std::any_of(stays_.begin(), stays_.end(), [](const Stay& stay) { return stay.process.mig; });
  if (stays_.size() > 1 && !mig) read_power(session, device, out);
  for (const Stay& stay : stays_) add_stay(stay, out);
  std::erase_if(stays_, [](const Stay& stay) { return stay.left.has_value(); });
  for (Stay& stay : stays_) stay.came.reset();
}

void Glances::add_stay(const Stay& stay, DeviceSample& out) {
  auto at = first_from(out.processes, place_of(stay.process));
  if (at == out.processes.end() || place_of(*at) != place_of(stay.process)) {
    if (!stay.left) return;
    at = out.processes.insert(at, stay.process);
    at->use = {};
    at->listed = false;
  }
  if (!at->came) at->came = stay.came;
  if (!at->listed) at->left = stay.left;
}

// The driver's stamps use its own clock. The newest sample is at most a period old, so the smallest difference to our
// clock is the offset.
void Glances::read_power(Session& session, Device device, DeviceSample& out) {
  if (!session.fn.nvmlDeviceGetSamples) return;
  std::vector<Sample> samples(kMostPowerSamples);
  unsigned count = kMostPowerSamples, type = 0;
  const Return result = session.call(session.fn.nvmlDeviceGetSamples, device, kSamplesTotalPower,
                                     static_cast<unsigned long long>(power_seen_), &type, &count, samples.data());
  if (result != kSuccess && result != kNotFound) return;
  samples.resize(result == kSuccess ? std::min(count, kMostPowerSamples) : 0);
  std::erase_if(samples, [&](const Sample& sample) { return sample.timeStamp <= power_seen_; });
  if (samples.empty()) {
    // The clock was set back: new samples look older than seen ones. The offset is learned again.
    power_seen_ = 0;
    power_offset_.reset();
    return;
  }
  power_seen_ = samples.back().timeStamp;
  const int64_t offset = micros(session.call.now().steady) - static_cast<int64_t>(power_seen_);
  power_offset_ = std::min(power_offset_.value_or(offset), offset);
  for (const Sample& sample : samples) {
    const auto at = std::chrono::microseconds(static_cast<int64_t>(sample.timeStamp) + *power_offset_);
    out.power_readings.push_back({at, Power::milliwatts(sample.sampleValue.uiVal)});
  }
}

}  // namespace gpuledger::nvml
