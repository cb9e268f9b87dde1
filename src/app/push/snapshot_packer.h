// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "app/push/push_queue.h"
#include "expose/expose.h"
#include "expose/remote_write.h"
#include "model/snapshot.h"

namespace gpuledger::app {

// Makes a snapshot to blocks, and marks the end of every series that the one before had.
class SnapshotPacker {
 public:
  SnapshotPacker(expose::ExtraLabels labels, size_t most_series_of_block)
      : labels_(std::move(labels)), most_(most_series_of_block) {}

  // Nothing for a cycle that was packed before.
  std::vector<PushBlock> pack(const Cycle& cycle, const expose::ExposeOptions& options);
  // The program ends: so do all series. A millisecond after their last samples.
  std::vector<PushBlock> end();

 private:
  std::vector<PushBlock> make_blocks(const std::vector<expose::WireSeries>& series, int64_t at_ms) const;

  const expose::ExtraLabels labels_;
  const size_t most_;
  std::unordered_set<std::string> known_;  // the series of the last snapshot
  int64_t last_ms_ = 0;
};

}  // namespace gpuledger::app
