// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "sample/gpu_source.h"
#include "sample/replay/trace.h"

namespace gpuledger::replay {

// A recorded GPU in virtual time: every sample() is one step later and returns what the live source would have
// returned. A batch lies on a reading of the energy counter and has its time, so that no joule is split; the last one
// lies on the last reading, however short the step. Also the clock of the replay: the last batch's time.
class ReplaySource final : public GpuSource, public Clock {
 public:
  ReplaySource(Trace trace, Nanoseconds step);

  // The last reading was returned; sample() would repeat it.
  bool done() const { return at_ + 1 >= trace_.counters.size() && started_; }

  SampleBatch sample(bool scan_processes) override;
  void release() override {}
  void resume() override {}
  Timestamp now() const override;

 private:
  // The lines in (from, to].
  struct Window {
    Nanoseconds from{0};
    Nanoseconds to{0};
  };
  using Processes = std::map<Pid, ProcessSample>;

  void add_residency(const Window& window, DeviceSample& device) const;
  size_t next_reading() const;
  void add_state(const Window& window, DeviceSample& device) const;
  void add_activity(const Window& window, DeviceSample& device) const;
  void add_fine_readings(const Window& window, DeviceSample& device) const;
  Processes listed_in(const Window& window) const;
  static void take_listing(const Trace::Listing& listing, Processes& processes);
  void add_tickets(const Window& window, Processes& processes) const;

  const Trace trace_;
  const Nanoseconds step_;
  std::shared_ptr<const DeviceDescription> description_;
  bool started_ = false;
  size_t at_ = 0;       // the reading of the last batch
  Nanoseconds due_{0};  // when the next batch is due
};

}  // namespace gpuledger::replay
