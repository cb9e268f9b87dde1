// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

#include "app/push/push_queue.h"
#include "expose/expose.h"
#include "expose/remote_write.h"
#include "model/snapshot.h"

namespace gpuledger::app {

// Makes a snapshot to one block, and marks the end of every series that the one before had. In one, because accounts
// and meter balance only together: a part of a snapshot must never be what a receiver has of it.
class SnapshotPacker {
 public:
  explicit SnapshotPacker(expose::ExtraLabels labels) : labels_(std::move(labels)) {}

  // Nothing for a cycle that was packed before.
  std::optional<PushBlock> pack(const Cycle& cycle, const expose::ExposeOptions& options);
  // The program ends: so do all series. A millisecond after their last samples. Nothing if there are none.
  std::optional<PushBlock> end();

 private:
  const expose::ExtraLabels labels_;
  std::unordered_set<std::string> known_;  // the series of the last snapshot
  int64_t last_ms_ = 0;
};

}  // namespace gpuledger::app
