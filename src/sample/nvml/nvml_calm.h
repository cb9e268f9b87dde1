// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/clock.h"
#include "model/sample.h"

namespace gpuledger::nvml {

// Decides when a GPU's per-process readings can be skipped. Utilization of processes and the performance monitors are
// more than half of the sampling cost, and on an idle GPU they never change. Power, utilization of the whole GPU and
// memory, which cost nothing, and energy, which is read anyway, show when that ends. Nothing is lost if the end is
// missed: the driver keeps its samples for longer than they are skipped.
class CalmWatch {
 public:
  // Call after a full read.
  void note_full(const DeviceSample& sample, Nanoseconds now);
  // Call after the gauges were read. True: no change since the last full read, which is recent.
  bool holds(const DeviceSample& gauges, Nanoseconds now) const;
  void note_skipped(Nanoseconds now) { skipped_at_ = now; }
  // The monitors' values of that read: no activity.
  const std::optional<Activity>& activity() const { return activity_; }
  // The monitors' next answer is a mean since their last one. All of it belongs to the last step.
  void leave_out_calm(Activity& activity, Nanoseconds now) const;
  void reset() { *this = CalmWatch(); }

 private:
  bool calm_ = false;
  Nanoseconds at_{0};
  std::optional<Nanoseconds> skipped_at_;
  std::optional<Energy> counter_;
  std::optional<Power> mean_;  // by the counter, for the time before at_
  std::optional<Power> power_;
  std::optional<Bytes> memory_;
  std::optional<Activity> activity_;
};

}  // namespace gpuledger::nvml
