// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "sample/switch_trace/trace_session.h"

namespace gpuledger::switch_trace {

// Converts the GPU's time stamps to ours. The GPU's clock runs a few ppm too fast or too slow and is set when the
// machine wakes up, so it is compared with ours from time to time.
class GpuClock {
 public:
  // False: it was set since the last comparison, and earlier stamps cannot be converted any more.
  bool compare(const ClockPair& pair);
  bool known() const { return last_.has_value(); }
  Nanoseconds to_steady(Nanoseconds gpu) const;
  // False: stamped so long after the last comparison that it must be wrong.
  bool has_happened(uint64_t gpu) const;
  Nanoseconds last_compared() const { return last_ ? last_->steady : Nanoseconds::min(); }

 private:
  std::optional<ClockPair> last_;
  double rate_ = 0;  // seconds that ours gains on the GPU's, per second
};

}  // namespace gpuledger::switch_trace
