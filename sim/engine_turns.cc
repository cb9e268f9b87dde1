// SPDX-License-Identifier: Apache-2.0
// Which process is on a computed GPU's engine, to the microsecond. A time slice is 2 ms, and a switch takes 80 us. A
// context stays on the engine until another one needs it, with or without work.
#include <algorithm>
#include <cmath>

#include "computed_gpu.h"

namespace gpuledger::sim {
namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;
constexpr int64_t kSwitchNanos = 80'000;
constexpr double kSliceNanos = 2.2e6;

}  // namespace

void ComputedGpu::write_switches(Millis begin) {
  const int64_t now = begin * kNanosPerMilli;
  const bool lives = std::find(plan_.alive.begin(), plan_.alive.end(), on_engine_) != plan_.alive.end();
  if (on_engine_ != 0 && !lives) give_engine_to(0, now);
  std::map<unsigned, double> shares;
  for (const Worker& worker : plan_.workers) {
    if (worker.share > 0) shares[worker.pid] += worker.share;
  }
  if (shares.size() == 1) {
    if (on_engine_ != shares.begin()->first) give_engine_to(shares.begin()->first, now + kSwitchNanos);
  } else if (shares.size() > 1) {
    take_turns(now, {shares.begin(), shares.end()});
  }
}

// As many rounds as the process with the most work needs slices. Time that no process needs stays with the last process
// of a round.
void ComputedGpu::take_turns(int64_t begin, const std::vector<std::pair<unsigned, double>>& sharers) {
  const double step = static_cast<double>(kStep * kNanosPerMilli);
  double most = 0;
  for (const auto& [pid, share] : sharers) most = std::max(most, share);
  const int rounds = std::max(1, static_cast<int>(std::lround(most * step / kSliceNanos)));
  const double length = step / rounds;
  for (int round = 0; round < rounds; ++round) {
    double at = static_cast<double>(begin) + round * length;
    for (const auto& [pid, share] : sharers) {
      if (on_engine_ != pid) give_engine_to(pid, static_cast<int64_t>(at) + kSwitchNanos);
      at += share * length;
    }
  }
}

void ComputedGpu::give_engine_to(unsigned pid, int64_t nanos) {
  if (on_engine_ != 0) switches_.push_back({nanos - kSwitchNanos, on_engine_, false});
  if (pid != 0) switches_.push_back({nanos, pid, true});
  on_engine_ = pid;
}

}  // namespace gpuledger::sim
