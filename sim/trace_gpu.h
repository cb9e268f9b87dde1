// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "gpu.h"
#include "trace.h"

namespace gpuledger::sim {

// A GPU that says again what a recorded one said, then holds the last state or starts over with the
// counter going on.
class TraceGpu final : public Gpu {
 public:
  TraceGpu(const GpuSpec& spec, Fate fate);
  void advance(Millis now) override;

 private:
  struct Position {
    size_t energy = 0, ticket = 0, listing = 0, state = 0, activity = 0, power = 0;
  };

  void reset() override;
  Millis time() const override { return played_to_; }
  void play_until(Millis local);
  void play_step(Millis local);
  void play_list(const Trace::Listing& listing);
  void play_activity(const Trace::Activity& activity);

  const Trace& trace_;
  std::vector<Ticket> tickets_;  // the recorded ones, and one for nobody wherever 200 ms passed without
  Position at_;
  Millis lap_start_ = 0;
  Millis lap_position_ = 0;
  Millis played_to_ = 0;
  Millis last_activity_ = 0;
  Millis next_blank_ = 0;  // after the end
  uint64_t counter_offset_mj_ = 0;
  GpmMix sums_{};
};

}  // namespace gpuledger::sim
