// SPDX-License-Identifier: Apache-2.0
#include "lives.h"

#include <algorithm>

namespace gpuledger::sim {
namespace {

constexpr unsigned kPidMax = 4194304;  // of 64-bit Linux

Life life_of(const ProcessSpec& process, int64_t number) {
  Life life;
  life.process = &process;
  life.pid = process.pid + static_cast<unsigned>(number) % kPidMax * process.pid_step;
  if (life.pid > kPidMax) life.pid = 1000 + life.pid % (kPidMax - 1000);
  life.start = process.start + number * process.every;
  life.end = process.every > 0 ? std::min(life.start + process.lives, process.end) : process.end;
  return life;
}

}  // namespace

void append_lives(const ProcessSpec& process, Millis t, std::vector<Life>* lives) {
  if (t < process.start || t >= process.end) return;
  if (process.every <= 0) {
    lives->push_back(life_of(process, 0));
    return;
  }
  const int64_t newest = (t - process.start) / process.every;
  const int64_t oldest = std::max<int64_t>(0, newest - process.lives / process.every);
  for (int64_t number = oldest; number <= newest; ++number) {
    const Life life = life_of(process, number);
    if (t < life.end) lives->push_back(life);
  }
}

Millis next_life_change(const ProcessSpec& process, Millis t) {
  if (t < process.start) return process.start;
  if (t >= process.end) return kForever;
  Millis next = process.end;
  if (process.every > 0) {
    const int64_t newest = (t - process.start) / process.every;
    next = std::min(next, process.start + (newest + 1) * process.every);
    const int64_t oldest = std::max<int64_t>(0, newest - process.lives / process.every);
    for (int64_t number = oldest; number <= newest; ++number) {
      const Millis end = process.start + number * process.every + process.lives;
      if (end > t) next = std::min(next, end);
    }
  }
  return next;
}

Working working_at(const Life& life, Millis t, uint64_t seed) {
  const Duty& duty = life.process->load.duty;
  if (duty.idle) return {false, life.end};
  if (duty.period <= 0) return {true, life.end};
  const Millis local = t - life.start - duty.phase;
  if (local < 0) return {false, std::min(life.end, life.start + duty.phase)};
  const int64_t cell = local / duty.period;
  const Millis cell_start = t - local % duty.period;
  const double lot =
      static_cast<double>(mix_hash(seed, life.pid, static_cast<uint64_t>(cell)) >> 11) / 9007199254740992.0;
  const Millis on_from =
      cell_start + static_cast<Millis>(lot * duty.jitter * static_cast<double>(duty.period - duty.on));
  const Millis on_until = on_from + duty.on;
  if (t < on_from) return {false, std::min(life.end, on_from)};
  if (t < on_until) return {true, std::min(life.end, on_until)};
  return {false, std::min(life.end, cell_start + duty.period)};
}

void divide_time(double capacity, std::vector<Claim>* claims) {
  double left = capacity;
  std::vector<Claim*> open;
  for (Claim& claim : *claims) {
    claim.got = 0;
    open.push_back(&claim);
  }
  // Each round satisfies at least one claim or is the last.
  while (!open.empty()) {
    double weights = 0;
    for (const Claim* claim : open) weights += claim->weight;
    std::vector<Claim*> rest;
    double given = 0;
    for (Claim* claim : open) {
      if (claim->want <= left * claim->weight / weights) {
        claim->got = claim->want;
        given += claim->got;
      } else {
        rest.push_back(claim);
      }
    }
    if (rest.size() == open.size()) {
      for (Claim* claim : open) claim->got = left * claim->weight / weights;
      return;
    }
    left -= given;
    open.swap(rest);
  }
}

}  // namespace gpuledger::sim
