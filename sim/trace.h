// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "scenario.h"

namespace gpuledger::sim {

// What one GPU's driver said while it was recorded, in the simulator's units: what is absent counts as 0.
struct Trace {
  struct Energy {
    Millis t;
    uint64_t mj;
    unsigned power_mw;
  };
  struct Caught {  // a utilization sample and the one process it names
    Millis t;
    unsigned pid, sm, memory, encoder, decoder;
  };
  using Holder = std::pair<unsigned, uint64_t>;  // pid, bytes
  struct Listing {
    Millis t;
    std::vector<Holder> compute, mps;
  };
  struct State {
    Millis t;
    unsigned gpu_util, memory_util, sm_mhz, memory_mhz, temperature;
    uint64_t event_reasons, memory_used;
  };
  struct Activity {
    Millis t;
    GpmMix percent;
  };
  struct Watts {
    Millis t;
    unsigned mw;
  };

  std::string name, uuid, driver;
  uint64_t memory_total = 0;
  unsigned limit_mw = 0;
  Millis length = 0;
  std::vector<Energy> energy;
  std::vector<Caught> caught;
  std::vector<Listing> listings;
  std::vector<State> states;
  std::vector<Activity> activities;
  std::vector<Watts> power;
};

// Plain or gzipped. The error is one line: file, line, what is wrong.
Result<Trace> read_trace(const std::string& path);

// The processes of a trace as a scenario would tell them, so that they have a /proc entry while they live.
std::vector<ProcessSpec> trace_processes(const Trace& trace, unsigned gpu, bool loop);

}  // namespace gpuledger::sim
