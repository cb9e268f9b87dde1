// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "scenario.h"

namespace gpuledger::sim {

// One run of a process of the scenario; a repeating one has many.
struct Life {
  const ProcessSpec* process = nullptr;
  unsigned pid = 0;
  Millis start = 0;
  Millis end = kForever;
};

void append_lives(const ProcessSpec& process, Millis t, std::vector<Life>* lives);
// The first moment after t at which one begins or ends; kForever: never again.
Millis next_life_change(const ProcessSpec& process, Millis t);

struct Working {
  bool on = false;
  Millis until = kForever;
};
Working working_at(const Life& life, Millis t, uint64_t seed);

struct Claim {
  double want = 0;
  double weight = 1;
  double got = 0;
};
// Each claim gets what it wants. If the sum exceeds the capacity, each gets a part by weight, at most what it wants.
void divide_time(double capacity, std::vector<Claim>* claims);

}  // namespace gpuledger::sim
