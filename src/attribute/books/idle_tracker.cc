// SPDX-License-Identifier: Apache-2.0
#include "attribute/books/idle_tracker.h"

#include <algorithm>

namespace gpuledger::attribute {

void IdleTracker::observe(const DeviceSample& device, const EngineUse& use, Nanoseconds now) {
  if (!device.up || device.utilization != UtilizationState::kKnown) {
    blind_ = true;
    return;
  }
  highest_sm_ = std::max(highest_sm_, use.sm.value);
  if (!use.any()) return;
  busy_ = worked_ = true;
  last_active_ = now;
  quiet_evaluations_ = 0;  // at once: a working process is not idle
}

void IdleTracker::evaluate() {
  evaluated_ = !blind_;
  evaluated_sm_ = highest_sm_;
  if (blind_ || busy_) {
    quiet_evaluations_ = 0;
  } else {
    ++quiet_evaluations_;
  }
  blind_ = busy_ = false;
  highest_sm_ = 0;
}

IdleState IdleTracker::state(Nanoseconds now) const {
  IdleState state;
  state.evaluated = evaluated_ && !blind_ && (worked_ || quiet_evaluations_ >= 2);
  state.idle = state.evaluated && quiet_evaluations_ >= 2;
  if (state.idle) state.idle_for = now - last_active_;
  state.highest_sm = Ratio{std::max(evaluated_sm_, highest_sm_)};
  state.works = busy_;
  return state;
}

IdleTracker::Memory IdleTracker::memory(Nanoseconds now) const {
  return {now - last_active_, blind_ ? 0 : quiet_evaluations_, worked_};
}

}  // namespace gpuledger::attribute
