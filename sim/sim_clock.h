// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "scenario.h"

namespace gpuledger::sim {

// Real: time 0 is the first nvmlInit, or GPU_LEDGER_SIM_EPOCH, so that several processes can share one node. Virtual:
// time is what set() was given, and the wall clock starts with 2026.
class SimClock {
 public:
  Status start();
  bool is_virtual() const { return virtual_; }
  void set(double seconds) { virtual_millis_ = static_cast<Millis>(seconds * 1000 + 0.5); }
  Millis now() const;
  // The wall clock of the node, finer than the simulation's steps.
  int64_t wall_nanos() const;
  int64_t wall_micros(Millis t) const { return epoch_micros_ + t * 1000; }

 private:
  static constexpr int64_t kVirtualEpoch = 1767225600ll * 1000000;  // 2026-01-01T00:00:00Z

  bool virtual_ = false;
  bool given_epoch_ = false;
  int64_t epoch_micros_ = kVirtualEpoch;
  int64_t steady_start_nanos_ = 0;
  std::atomic<Millis> virtual_millis_{0};
};

}  // namespace gpuledger::sim
