// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "gpu.h"

namespace gpuledger::sim {

// One process in the driver's samples (tickets) since some time. Sums are hundredths of a percent over all tickets: a
// process that two of five tickets name, each with 99 %, has 39.6 %.
struct ProcessUse {
  unsigned pid = 0;
  Millis newest = 0;
  uint64_t sm = 0, memory = 0, encoder = 0, decoder = 0;
};

struct UseReport {
  unsigned tickets = 0;
  std::vector<ProcessUse> processes;
};

UseReport use_since(const GpuState& state, Millis after);

inline unsigned percent_up(uint64_t sum, unsigned tickets) {
  return static_cast<unsigned>((sum + tickets * 100ull - 1) / (tickets * 100ull));
}
inline unsigned percent_down(uint64_t sum, unsigned tickets) {
  return static_cast<unsigned>(sum / (tickets * 100ull));
}

}  // namespace gpuledger::sim
