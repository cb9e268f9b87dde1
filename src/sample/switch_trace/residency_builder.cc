// SPDX-License-Identifier: Apache-2.0
#include "sample/switch_trace/residency_builder.h"

#include <algorithm>
#include <utility>

#include "sample/switch_trace/rm_abi.h"

namespace gpuledger::switch_trace {

void ResidencyBuilder::begin(Nanoseconds at) {
  tracing_ = true;
  began_ = decided_ = unknown_from_ = std::max(at, decided_);
  engines_.clear();
  bins_.clear();
  next_bin_ = (began_ + kBin - Nanoseconds(1)) / kBin;  // the first that lies fully in the traced time
}

void ResidencyBuilder::end(Nanoseconds at) {
  if (!tracing_) return;
  complete_until(at);
  tracing_ = false;
  engines_.clear();
  bins_.clear();
}

template <typename Each>
void ResidencyBuilder::for_each_bin(Nanoseconds from, Nanoseconds to, Each each) {
  while (from < to) {
    const int64_t number = from / kBin;
    const Nanoseconds until = std::min(to, (number + 1) * kBin);
    each(bins_[number], until - from);
    from = until;
  }
}

void ResidencyBuilder::book_unknown(Nanoseconds from, Nanoseconds to) {
  if (from >= to) return;
  counts_.unknown += to - from;
  for_each_bin(from, to, [](OpenBin& bin, Nanoseconds) { bin.unknown = true; });
}

void ResidencyBuilder::book_resident(Pid pid, Nanoseconds from, Nanoseconds to, bool contended) {
  // A hidden pid is a process that we cannot see. The kernel's own contexts are no process.
  if (pid == kHiddenPid) return book_unknown(from, to);
  if (pid == kKernelPid) return;
  for_each_bin(from, to, [&](OpenBin& bin, Nanoseconds time) {
    Residency& resident = bin.residents.try_emplace(pid, Residency{pid, Nanoseconds(0), Nanoseconds(0)}).first->second;
    resident.resident += time;
    if (contended) *resident.contended += time;
  });
}

void ResidencyBuilder::book_slice(Engine& engine, Nanoseconds until, bool contended) {
  book_resident(engine.pid, engine.booked, until, contended);
  engine.booked = std::max(engine.booked, until);
}

ResidencyBuilder::Engine& ResidencyBuilder::engine_of(const SwitchEvent& event) {
  const auto [found, fresh] = engines_.try_emplace(event.engine);
  // For a new engine the time is unknown as far back as it is undecided.
  if (fresh) found->second.since = found->second.booked = std::max(unknown_from_, decided_);
  return found->second;
}

void ResidencyBuilder::take(const SwitchEvent& given) {
  if (!tracing_) return;
  SwitchEvent event = given;
  event.at = std::max(event.at, began_);
  Engine& engine = engine_of(event);
  const bool late = event.at < decided_ && given.at >= began_;
  if (late) ++counts_.late;
  event.at = std::max({event.at, engine.since, engine.booked});
  // Bins already taken were wrong; from there to the event it is unknown too.
  if (late && engine.state == State::kOccupied) engine.state = State::kUnknown;
  if (event.start) {
    start(engine, event);
  } else {
    vacate(engine, event);
  }
}

void ResidencyBuilder::start(Engine& engine, const SwitchEvent& event) {
  if (engine.state == State::kVacated) {
    const Nanoseconds gap = event.at - engine.since;
    const bool handed_over = gap <= kLongestSwitch;
    const bool contended =
        handed_over && event.context != engine.context && engine.since - engine.occupied <= kLongestContended;
    book_slice(engine, engine.since, contended);
    if (handed_over) counts_.switching += gap;
  } else {
    if (engine.state == State::kOccupied) ++counts_.doubtful;  // its end was lost
    book_unknown(engine.booked, event.at);
  }
  ++counts_.switches;
  if (event.pid != kHiddenPid && event.pid != kKernelPid) ++counts_.switches_by_process[event.pid];
  engine.state = State::kOccupied;
  engine.pid = event.pid;
  engine.context = event.context;
  engine.since = engine.booked = event.at;
}

void ResidencyBuilder::vacate(Engine& engine, const SwitchEvent& event) {
  const bool fits = engine.state == State::kOccupied && engine.pid == event.pid && engine.context == event.context;
  if (fits) {
    engine.occupied = engine.since;
  } else {
    if (engine.state != State::kUnknown) ++counts_.doubtful;  // a start or another end was lost
    book_unknown(engine.booked, event.at);
    engine.booked = engine.occupied = event.at;
  }
  engine.state = State::kVacated;
  engine.pid = event.pid;
  engine.context = event.context;
  engine.since = event.at;
}

void ResidencyBuilder::lose_track() {
  for (auto& [number, engine] : engines_) {
    // The last slice ended before the gap, but it is not known how. So none of it counts as contended.
    if (engine.state == State::kVacated) book_slice(engine, engine.since, false);
    engine.state = State::kUnknown;
  }
}

// Returns up to when the engine's time is decided. Certain time goes into the bins.
Nanoseconds ResidencyBuilder::settle(Engine& engine, Nanoseconds at) {
  if (engine.state == State::kUnknown) {
    book_unknown(engine.booked, at);
    engine.booked = std::max(engine.booked, at);
    return at;
  }
  if (engine.state == State::kVacated) {
    if (at - engine.since <= kLongestSwitch) return std::min(at, engine.booked);
    book_slice(engine, engine.since, false);
    engine.booked = std::max(engine.booked, at);
    return at;
  }
  // Whether a slice is contended shows at its end, but one that is too long never is.
  if (at - engine.since <= kLongestContended) return std::min(at, engine.booked);
  book_slice(engine, at, false);
  return at;
}

void ResidencyBuilder::complete_until(Nanoseconds at) {
  if (!tracing_ || at <= decided_) return;
  Nanoseconds decided = at;
  for (auto& [number, engine] : engines_) decided = std::min(decided, settle(engine, at));
  if (engines_.empty()) {
    book_unknown(unknown_from_, at);
    unknown_from_ = at;
  }
  decided_ = std::max(decided_, decided);
  for (; (next_bin_ + 1) * kBin <= decided_; ++next_bin_) {
    ResidencyBin bin{(next_bin_ + 1) * kBin, kBin, {}};
    if (const auto open = bins_.find(next_bin_); open != bins_.end()) {
      for (const auto& [pid, resident] : open->second.residents) bin.residents.push_back(resident);
      if (!open->second.unknown) done_.push_back(std::move(bin));
    } else {
      done_.push_back(std::move(bin));
    }
  }
  bins_.erase(bins_.begin(), bins_.lower_bound(next_bin_));
}

SwitchCounts ResidencyBuilder::take_counts() {
  return std::exchange(counts_, {});
}

std::vector<ResidencyBin> ResidencyBuilder::take_bins() {
  return std::exchange(done_, {});
}

}  // namespace gpuledger::switch_trace
