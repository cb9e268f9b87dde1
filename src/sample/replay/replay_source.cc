// SPDX-License-Identifier: Apache-2.0
#include "sample/replay/replay_source.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

namespace gpuledger::replay {
namespace {

// The driver samples every 200 ms; an idle sample counts in its means but is not in the recording.
constexpr Nanoseconds kTicketPeriod = std::chrono::milliseconds(200);
// A performance monitor's line covers the time since the line before; the first, and one after a gap, this time.
constexpr Nanoseconds kActivityPeriod = std::chrono::milliseconds(100);
// The trace is complete up to this long ago, as for the live reader.
constexpr Nanoseconds kResidencyDelay = std::chrono::milliseconds(120);
constexpr uint32_t kMostPercent = 100;

template <typename T>
std::span<const T> within(const std::vector<T>& entries, Nanoseconds from, Nanoseconds to) {
  const auto later = [](Nanoseconds t, const T& entry) { return t < entry.t; };
  const auto begin = std::upper_bound(entries.begin(), entries.end(), from, later);
  const auto end = std::upper_bound(begin, entries.end(), to, later);
  return {begin, end};
}

class Mean {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  std::optional<double> value() const {
    return count_ == 0 ? std::nullopt : std::optional(sum_ / static_cast<double>(count_));
  }

 private:
  double sum_ = 0;
  size_t count_ = 0;
};

std::optional<Ratio> ratio_of(const Mean& mean) {
  const auto value = mean.value();
  return value ? std::optional(Ratio{*value}) : std::nullopt;
}

std::optional<Ratio> ratio_of(const std::optional<uint32_t>& percent) {
  if (!percent || *percent > kMostPercent) return std::nullopt;
  return Ratio::of_percent(*percent);
}

// As in the live source: zombie contexts leave percentages in the millions.
bool is_garbage(const Trace::Ticket& ticket) {
  return ticket.pid == 0 || std::max({ticket.sm, ticket.memory, ticket.encoder, ticket.decoder}) > kMostPercent;
}

}  // namespace

ReplaySource::ReplaySource(Trace trace, Nanoseconds step) : trace_(std::move(trace)), step_(step) {
  auto description = std::make_shared<DeviceDescription>();
  description->uuid.text = trace_.uuid;
  description->model = trace_.name;
  description->driver = trace_.driver;
  if (trace_.limit_milliwatts) description->power_limit = Power::milliwatts(*trace_.limit_milliwatts);
  description_ = std::move(description);
}

Timestamp ReplaySource::now() const {
  const Nanoseconds t = trace_.counters[at_].t;
  return {t, t};
}

// The reading nearest to the batch's due time, and after the last one.
size_t ReplaySource::next_reading() const {
  const auto& readings = trace_.counters;
  size_t next = std::min(at_ + 1, readings.size() - 1);
  while (next + 1 < readings.size() && readings[next].t <= readings[at_].t) ++next;
  while (next + 1 < readings.size() && due_ - readings[next].t > readings[next + 1].t - due_) ++next;
  return next;
}

SampleBatch ReplaySource::sample(bool) {
  const Nanoseconds previous = started_ ? trace_.counters[at_].t : trace_.counters.front().t - step_;
  if (started_) {
    at_ = next_reading();
  } else {
    started_ = true;
    due_ = trace_.counters.front().t;
  }
  const Trace::Counter& counter = trace_.counters[at_];
  // One step further; after a gap in the recording, as many as have passed.
  if (const Nanoseconds past = counter.t + step_ / 2 - due_; past >= Nanoseconds(0)) due_ += (past / step_ + 1) * step_;

  DeviceSample device;
  device.description = description_;
  device.up = true;
  device.energy_counter = Energy::millijoules(static_cast<int64_t>(counter.millijoules));
  if (counter.milliwatts) device.power = Power::milliwatts(*counter.milliwatts);
  if (trace_.memory_total) device.memory_total = Bytes{*trace_.memory_total};
  const Window window{previous, counter.t};
  add_state(window, device);
  add_activity(window, device);
  add_fine_readings(window, device);

  Processes processes = listed_in(window);
  add_tickets(window, processes);
  device.utilization = UtilizationState::kKnown;
  for (auto& [pid, process] : processes) device.processes.push_back(process);

  add_residency(window, device);
  SampleBatch batch;
  batch.at = now();
  batch.processes_scanned = true;
  batch.devices.push_back(std::move(device));
  batch.health.source = "replay";
  batch.health.up = true;
  return batch;
}

// Gauges: the last reading. The clock: the mean over the window, since power follows it.
void ReplaySource::add_state(const Window& window, DeviceSample& device) const {
  const auto so_far = within(trace_.states, Nanoseconds::min(), window.to);
  if (so_far.empty()) return;
  const Trace::State& last = so_far.back();
  device.gpu_utilization = ratio_of(last.gpu_percent);
  device.memory_utilization = ratio_of(last.memory_percent);
  if (last.memory_used) device.memory_used = Bytes{*last.memory_used};
  if (last.celsius) device.temperature_celsius = *last.celsius;
  Mean clock;
  for (const Trace::State& state : within(trace_.states, window.from, window.to)) {
    if (state.sm_mhz) clock.add(*state.sm_mhz);
  }
  device.sm_clock_mhz = clock.value();
}

// A line is read a few milliseconds after the counter and covers the time before it, so it belongs to the step with the
// middle of that time.
void ReplaySource::add_activity(const Window& window, DeviceSample& device) const {
  Mean graphics;
  std::array<Mean, Activity::kParts> parts;
  for (const Trace::Busy& busy :
       within(trace_.activities, window.from + kActivityPeriod / 2, window.to + kActivityPeriod / 2)) {
    if (busy.activity.graphics) graphics.add(busy.activity.graphics->value);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (busy.activity.parts[i]) parts[i].add(busy.activity.parts[i]->value);
    }
  }
  Activity mean;
  mean.graphics = ratio_of(graphics);
  bool any = mean.graphics.has_value();
  for (size_t i = 0; i < parts.size(); ++i) {
    mean.parts[i] = ratio_of(parts[i]);
    any = any || mean.parts[i];
  }
  if (any) device.activity = mean;
}

// The glances of the live source.
void ReplaySource::add_fine_readings(const Window& window, DeviceSample& device) const {
  const auto states = within(trace_.states, Nanoseconds::min(), window.to);
  for (const Trace::Busy& busy : within(trace_.activities, window.from, window.to)) {
    ActivityReading& reading = device.activity_readings.emplace_back();
    reading.at = busy.t;
    reading.activity = busy.activity;
    for (auto state = states.rbegin(); state != states.rend() && !reading.sm_clock_mhz; ++state) {
      if (state->t <= busy.t && state->sm_mhz) reading.sm_clock_mhz = *state->sm_mhz;
    }
  }
  for (const Trace::Watts& watts : within(trace_.power, window.from, window.to)) {
    device.power_readings.push_back({watts.t, Power::milliwatts(watts.milliwatts)});
  }
}

// The last lists, and processes that were in an earlier list of this step.
ReplaySource::Processes ReplaySource::listed_in(const Window& window) const {
  Processes processes;
  const auto so_far = within(trace_.listings, Nanoseconds::min(), window.to);
  if (so_far.empty()) return processes;
  const auto in_step = within(trace_.listings, window.from, window.to);
  const Trace::Listing* before = in_step.size() < so_far.size() ? &so_far[so_far.size() - in_step.size() - 1] : nullptr;
  if (before) take_listing(*before, processes);
  for (const Trace::Listing& listing : in_step) {
    Processes now;
    take_listing(listing, now);
    for (auto& [pid, process] : processes) {
      if (process.listed && !now.contains(pid)) {
        process.listed = false;
        process.left = listing.t;
      }
    }
    for (auto& [pid, process] : now) {
      const auto known = processes.find(pid);
      if (known == processes.end() || !known->second.listed) process.came = listing.t;
      if (known != processes.end() && known->second.came) process.came = known->second.came;
      processes[pid] = process;
    }
  }
  return processes;
}

void ReplaySource::take_listing(const Trace::Listing& listing, Processes& processes) {
  const auto add = [&](const std::vector<Trace::Holder>& holders, bool ProcessSample::*mark) {
    for (const Trace::Holder& holder : holders) {
      if (holder.pid == 0) continue;
      ProcessSample& process = processes[holder.pid];
      process.pid = holder.pid;
      process.listed = true;
      process.*mark = true;
      if (holder.memory) process.memory = std::max(process.memory.value_or(Bytes{0}), *holder.memory);
    }
  };
  add(listing.compute, &ProcessSample::compute);
  add(listing.mps, &ProcessSample::mps_client);
}

// The driver's own mean: over all samples of the window, including idle ones. A process named in one is in the batch
// even if it has exited, but not as listed.
void ReplaySource::add_tickets(const Window& window, Processes& processes) const {
  const auto tickets = within(trace_.tickets, window.from, window.to);
  std::set<Nanoseconds> samples;
  for (const Trace::Ticket& ticket : tickets) samples.insert(ticket.t);
  const double expected =
      std::round(std::chrono::duration<double>(window.to - window.from) / std::chrono::duration<double>(kTicketPeriod));
  const double count = std::max(static_cast<double>(samples.size()), expected);
  for (const Trace::Ticket& ticket : tickets) {
    if (is_garbage(ticket)) continue;
    ProcessSample& process = processes[ticket.pid];
    process.pid = ticket.pid;
    EngineUse& use = process.use;
    use.sm.value += Ratio::of_percent(ticket.sm).value / count;
    use.memory.value += Ratio::of_percent(ticket.memory).value / count;
    use.encoder.value += Ratio::of_percent(ticket.encoder).value / count;
    use.decoder.value += Ratio::of_percent(ticket.decoder).value / count;
  }
}

void ReplaySource::add_residency(const Window& window, DeviceSample& device) const {
  if (trace_.residency.empty()) return;
  device.exact_time = ExactTime{};
  device.exact_time->trusted = true;
  device.exact_time->reason = "recorded";
  for (const Trace::Resident& resident :
       within(trace_.residency, window.from - kResidencyDelay, window.to - kResidencyDelay)) {
    device.residency.push_back(resident.bin);
  }
}

}  // namespace gpuledger::replay
