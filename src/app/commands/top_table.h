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
  size_t rows = 0;  // 0: as many as there are
  TopOrder order = TopOrder::kWatts;
  std::string node;
  bool keys = false;  // say in the first line which there are
};

// The screen of `gpu-ledger top`: the node, its GPUs, then its processes. before: the cycle that watts are reckoned
// from; null: this is the first, and nobody has any yet. Pure; every line fits the columns and holds no control
// character.
std::vector<std::string> write_top(const Cycle& cycle, const Cycle* before, const TopView& view);

}  // namespace gpuledger::app
