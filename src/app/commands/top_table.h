// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/snapshot.h"

namespace gpuledger::app {

enum class TopOrder { kWatts, kMemory, kEnergy, kIdle };

struct TopView {
  size_t columns = 120;
  size_t rows = 0;  // 0: all
  TopOrder order = TopOrder::kWatts;
  std::string node;
  bool keys = false;  // list the keys in the first line
};

// The screen of `gpu-ledger top`: the node, its GPUs, then its processes. before: the previous cycle, for the watts;
// null in the first cycle, which has no watts. Pure; every line fits the columns and has no control characters.
std::vector<std::string> write_top(const Cycle& cycle, const Cycle* before, const TopView& view);

}  // namespace gpuledger::app
