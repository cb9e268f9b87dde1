// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/clock.h"
#include "model/sample.h"

namespace gpuledger::nvml {

// Says when a GPU need not be asked who works. Utilisation of processes and the performance monitors are more than
// half of what sampling costs, and on a GPU on which nobody works they say the same every time; what costs nothing to
// read (power, utilisation of the whole, memory) or is read anyhow (energy) shows when that ends. Nothing is lost when
// it ends unseen: the driver keeps its samples for longer than they are left there.
class CalmWatch {
 public:
  // After everything was read.
  void note_full(const DeviceSample& sample, Nanoseconds now);
  // After the gauges were read: nothing has changed since everything was, and that was not long ago.
  bool holds(const DeviceSample& gauges, Nanoseconds now) const;
  void note_skipped(Nanoseconds now) { skipped_at_ = now; }
  // What the monitors said then: that nothing moved.
  const std::optional<Activity>& activity() const { return activity_; }
  // The monitors' next answer is a mean since their last one. All of it belongs to the time since the last look.
  void leave_out_calm(Activity& activity, Nanoseconds now) const;
  void reset() { *this = CalmWatch(); }

 private:
  bool calm_ = false;
  Nanoseconds at_{0};
  std::optional<Nanoseconds> skipped_at_;
  std::optional<Energy> counter_;
  std::optional<Power> mean_;  // by the counter, over the time before at_
  std::optional<Power> power_;
  std::optional<Bytes> memory_;
  std::optional<Activity> activity_;
};

}  // namespace gpuledger::nvml
