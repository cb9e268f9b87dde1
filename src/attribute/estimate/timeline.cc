// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/timeline.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace gpuledger::attribute {
namespace {

constexpr double kSliver = 0.05;  // s: two cuts closer than this are one
// A reading of a window may extend over its edge by this much, in s.
constexpr double kTolerance = 0.03;

// A share of the time or of full scale. NaN and values out of range are not measurements.
bool is_share(double value) {
  constexpr double kRounding = 0.05;
  return value >= 0 && value <= 1 + kRounding;
}

// Without impossible values.
Reading checked(Reading reading) {
  if (reading.busy && !is_share(*reading.busy)) reading.busy.reset();
  for (auto& part : reading.parts) {
    if (part && !is_share(*part)) part.reset();
  }
  constexpr double kMostClock = 4;  // over the reference
  if (!(reading.clock > 0 && reading.clock < kMostClock)) reading.clock = 1;
  return reading;
}

bool is_possible(const ResidencySlot& slot) {
  return std::all_of(slot.times.begin(), slot.times.end(), [](const ResidencySlot::Time& time) {
    return time.seconds >= 0 && time.contended >= 0 && std::isfinite(time.seconds + time.contended);
  });
}

double overlap(double from, double to, double begin, double end) {
  return std::max(0.0, std::min(to, end) - std::max(from, begin));
}

}  // namespace

void Timeline::begin_anew(double at) {
  started_ = true;
  mark_ = at;
  stays_.clear();
  energy_ = {{at, 0}};
  readings_.clear();
  residency_.clear();
  samples_.clear();
}

bool Timeline::continued_by(const Step& step) const {
  return started_ && std::abs(step.begin - last_end_) <= kSliver;
}

std::vector<WindowInput> Timeline::add(const Step& step) {
  if (!continued_by(step)) begin_anew(step.begin);
  last_end_ = step.end;
  take_in(step);
  double limit = step.end;
  if (step.readings.size() > 1) limit = std::min(limit, step.readings.back().to);
  if (step.end - mark_ > constants_.window_wait) limit = step.end;

  std::vector<WindowInput> windows;
  const std::vector<double> ends = cuts(limit);
  for (size_t i = 0; i < ends.size(); ++i) {
    const bool last = i + 1 == ends.size();
    if (last && ends[i] - mark_ < constants_.window_least * constants_.window) break;  // left for the next step
    const double begin = mark_;
    const auto pieces = std::max(1L, std::lround((ends[i] - begin) / constants_.window));
    for (long piece = 1; piece <= pieces; ++piece) {
      const double end = begin + (ends[i] - begin) * static_cast<double>(piece) / static_cast<double>(pieces);
      windows.push_back(cut_window(mark_, end, step));
      mark_ = end;
    }
  }
  drop_past();
  return windows;
}

// The times up to the limit at which a process came or left, and the limit.
std::vector<double> Timeline::cuts(double limit) const {
  std::vector<double> ends;
  for (const auto& [account, stay] : stays_) {
    for (double edge : {stay.from, stay.to}) {
      if (edge > mark_ + kSliver && edge < limit - kSliver) ends.push_back(edge);
    }
  }
  std::sort(ends.begin(), ends.end());
  const auto close = [](double a, double b) { return b - a < kSliver; };
  ends.erase(std::unique(ends.begin(), ends.end(), close), ends.end());
  if (limit > mark_ + kSliver) ends.push_back(limit);
  return ends;
}

void Timeline::take_in(const Step& step) {
  // Each sample names one process, with the whole GPU's utilization.
  double caught = 0;
  const auto samples_of = [](const Member& member) {
    return std::isfinite(member.busy) ? std::max(0.0, member.busy) : 0;
  };
  for (const Member& member : step.members) caught += samples_of(member);
  for (size_t i = 0; i < step.members.size(); ++i) {
    const Member& member = step.members[i];
    const double from = std::max(step.begin, member.from);
    const double to = std::min(step.end, member.to);
    const auto [entry, fresh] = stays_.try_emplace(member.account, Stay{member, from, to});
    if (!fresh) {
      entry->second.member = member;
      entry->second.to = to;
    }
    if (samples_of(member) > 0 && to > from) {
      const double here = step.seconds() / (to - from);
      samples_.push_back({member.account, from, to, samples_of(member) / caught * kSamplesPerSecond * here,
                          std::clamp(step.shares[i], 0.0, 1.0) * here});
    }
  }
  for (const Reading& reading : step.readings) {
    readings_.push_back(checked(reading));
    for (const auto& part : readings_.back().parts) monitored_ |= part.has_value();
  }
  std::copy_if(step.residency.begin(), step.residency.end(), std::back_inserter(residency_), is_possible);
  take_in_energy(step);
}

// The counter gives the sum, power samples the shape.
void Timeline::take_in_energy(const Step& step) {
  const double before = energy_.back().joules;
  std::vector<Knot> shape;
  double sum = 0;
  double last = step.begin;
  for (const PowerPoint& point : step.power) {
    if (!(point.at > last && point.at <= step.end && std::isfinite(point.watts))) continue;
    sum += std::max(0.0, point.watts) * (point.at - last);
    shape.push_back({point.at, sum});
    last = point.at;
  }
  // Too few samples: constant power assumed.
  if (sum > 0 && last > step.begin + 0.5 * step.seconds()) {
    const double scale = step.dynamic_joules * (last - step.begin) / step.seconds() / sum;
    for (const Knot& knot : shape) energy_.push_back({knot.at, before + knot.joules * scale});
  }
  if (energy_.back().at < step.end) energy_.push_back({step.end, before + step.dynamic_joules});
  energy_.back().joules = before + step.dynamic_joules;
}

double Timeline::joules_until(double at) const {
  const auto later =
      std::lower_bound(energy_.begin(), energy_.end(), at, [](const Knot& knot, double t) { return knot.at < t; });
  if (later == energy_.begin()) return energy_.front().joules;
  if (later == energy_.end()) return energy_.back().joules;
  const auto earlier = std::prev(later);
  const double part = (at - earlier->at) / (later->at - earlier->at);
  return earlier->joules + part * (later->joules - earlier->joules);
}

WindowInput Timeline::cut_window(double begin, double end, const Step& step) const {
  WindowInput window;
  window.begin = begin;
  window.end = end;
  window.joules = joules_until(end) - joules_until(begin);
  window.full_watts = step.full_watts;
  window.mps = step.evidence == TimeEvidence::kMps;
  window.parts.reserve(stays_.size());
  const double middle = (begin + end) / 2;
  for (const auto& [account, stay] : stays_) {
    if (stay.from > middle || stay.to < middle) continue;
    WindowInput::Part part;
    part.member = stay.member;
    for (const Samples& samples : samples_) {
      if (samples.account != account) continue;
      const double shared = overlap(samples.from, samples.to, begin, end);
      part.samples += samples.rate * shared;
      part.sampled_time += samples.share * shared / window.seconds();
    }
    window.parts.push_back(part);
  }
  add_activity(window);
  add_times(window);
  return window;
}

// The mean of the readings within the window, or else of those that overlap it. Work is counted in cycles, so activity
// is multiplied by the SM clock, except for memory, which has its own clock.
void Timeline::add_activity(WindowInput& window) const {
  window.shown[kPower] = window.joules / window.seconds() / window.full_watts;
  window.known[kPower] = true;
  for (const bool inside : {true, false}) {
    Features sum = Features::Zero();
    Features count = Features::Zero();
    double busy = 0, busy_count = 0, clock = 0, clock_count = 0;
    for (const Reading& reading : readings_) {
      const double shared = overlap(reading.from, reading.to, window.begin, window.end);
      const bool contained = reading.from >= window.begin - kTolerance && reading.to <= window.end + kTolerance;
      if (shared <= 0 || (inside && !contained)) continue;
      if (!inside && shared < 0.5 * std::min(reading.to - reading.from, window.seconds())) continue;
      if (reading.busy) busy += *reading.busy, ++busy_count;
      clock += reading.clock, ++clock_count;
      for (int part = 0; part + 1 < kFeatures; ++part) {
        const auto& value = reading.parts[static_cast<size_t>(part)];
        if (!value) continue;
        sum[1 + part] += *value * (part == Activity::kDram ? 1 : reading.clock);
        ++count[1 + part];
      }
    }
    if (busy_count == 0 && count.sum() == 0) continue;
    window.clock = clock / clock_count;
    if (busy_count > 0) window.busy = busy / busy_count;
    for (int f = 1; f < kFeatures; ++f) {
      window.known[f] = count[f] > 0;
      if (count[f] > 0) window.shown[f] = sum[f] / count[f];
    }
    break;
  }
  window.blind = monitored_ && !window.known.tail<kFeatures - 1>().any();
}

// A process stays on the engine while no other process waits. So residency counts as work while others waited; of the
// rest, only the part in which any kernel ran.
void Timeline::add_times(WindowInput& window) const {
  if (window.mps || window.parts.size() < 2) return;
  double traced = 0;
  const auto part_of = [&](uint64_t account) {
    return std::find_if(window.parts.begin(), window.parts.end(),
                        [&](const WindowInput::Part& part) { return part.member.account == account; });
  };
  for (const Reading& reading : readings_) {
    double covered = 0, contended = 0, alone = 0;
    std::map<uint64_t, ResidencySlot::Time> times;
    for (const ResidencySlot& slot : residency_) {
      const double middle = (slot.from + slot.to) / 2;
      if (middle < reading.from || middle >= reading.to || middle < window.begin || middle >= window.end) continue;
      covered += slot.to - slot.from;
      for (const ResidencySlot::Time& time : slot.times) {
        times[time.account].seconds += time.seconds;
        times[time.account].contended += time.contended;
        contended += time.contended;
        alone += time.seconds - time.contended;
      }
    }
    if (covered <= 0) continue;
    traced += covered;
    const double busy = reading.busy.value_or(1) * covered;
    const double working = alone > 0 ? std::clamp((busy - contended) / alone, 0.0, 1.0) : 0;
    for (const auto& [account, time] : times) {
      const auto part = part_of(account);
      if (part == window.parts.end()) continue;
      const double by_itself = time.seconds - time.contended;
      part->time += time.contended + by_itself * working;
      part->idle += by_itself * std::min(working, 1 - working);
    }
  }
  window.traced = traced >= constants_.traced_least * window.seconds();
  for (WindowInput::Part& part : window.parts) {
    part.time = window.traced ? part.time / traced : 0;
    part.idle = window.traced ? part.idle / traced : 0;
  }
}

void Timeline::drop_past() {
  const auto past = [this](const auto& entry) { return entry.to < mark_; };
  while (!readings_.empty() && past(readings_.front())) readings_.pop_front();
  while (!residency_.empty() && past(residency_.front())) residency_.pop_front();
  while (!samples_.empty() && past(samples_.front())) samples_.pop_front();
  while (energy_.size() > 1 && energy_[1].at <= mark_) energy_.pop_front();
  std::erase_if(stays_, [this](const auto& entry) { return entry.second.to < mark_ - kSliver; });
}

}  // namespace gpuledger::attribute
