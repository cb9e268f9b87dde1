// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "gpu.h"

namespace gpuledger::sim {

// What the tickets since some moment say of one process. Sums are hundredths of a percent over all tickets,
// so a process caught twice in five at 99 % comes out at 39.6 %.
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
