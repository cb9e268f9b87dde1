// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/clock.h"
#include "model/ledger.h"
#include "model/sample.h"

namespace gpuledger::attribute {

// Finds processes that hold a GPU without work. Idle after two evaluations in a row with no engine busy;
// the idle time then counts from the last activity.
class IdleTracker {
 public:
  // Kept over a restart.
  struct Memory {
    Nanoseconds quiet_for{0};  // since its last activity, or since it was first seen
    uint32_t quiet_evaluations = 0;
    bool worked = false;
  };

  explicit IdleTracker(Nanoseconds now) : last_active_(now) {}
  IdleTracker(const Memory& memory, Nanoseconds now)
      : last_active_(now - memory.quiet_for), quiet_evaluations_(memory.quiet_evaluations), worked_(memory.worked) {}

  void observe(const DeviceSample& device, const EngineUse& use, Nanoseconds now);
  // It is not known whether the process worked: it is not idle.
  void observe_nothing() { blind_ = true; }
  // Once every idle interval.
  void evaluate();
  IdleState state(Nanoseconds now) const;
  Memory memory(Nanoseconds now) const;

 private:
  Nanoseconds last_active_;
  bool blind_ = false;  // a sample since the last evaluation had no utilization
  bool busy_ = false;
  double highest_sm_ = 0;
  uint32_t quiet_evaluations_ = 0;
  bool worked_ = false;  // before its first work one evaluation is not enough
  bool evaluated_ = false;
  double evaluated_sm_ = 0;
};

}  // namespace gpuledger::attribute
