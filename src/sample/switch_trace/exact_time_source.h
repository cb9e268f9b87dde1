// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "sample/gpu_source.h"
#include "sample/switch_trace/self_test.h"
#include "sample/switch_trace/tracer_thread.h"

namespace gpuledger::switch_trace {

struct ExactTimeOptions {
  double budget = 1;    // share of the traced work that the trace may cost
  bool insist = false;  // set explicitly: an obstacle is a warning; else it stays off without a word
};

// Adds to another source which process was on each GPU's engine, from the context-switch trace. If the trace is not
// available or disagrees with the other source, that GPU goes on without it. Used by one thread; has one per GPU.
class ExactTimeSource final : public GpuSource {
 public:
  ExactTimeSource(std::unique_ptr<GpuSource> inner, std::shared_ptr<DriverDoor> door, ExactTimeOptions options,
                  const Clock& clock);

  ~ExactTimeSource() override;

  SampleBatch sample(bool scan_processes) override;
  std::vector<Pid> glance() override { return inner_->glance(); }
  void change_interval(Nanoseconds sample_interval) override { inner_->change_interval(sample_interval); }
  void change_readings(const Readings& wanted) override { inner_->change_readings(wanted); }
  // Ends the traces and closes all device nodes before the other source does.
  void release() override;
  void resume() override;

  // Whether all traces have been read as far as the last sample asked for: the next one has it.
  bool at_rest() const;

 private:
  struct Presence {
    enum State { kNew, kListed, kGone } state = kNew;
    Nanoseconds since{0};
  };
  struct Traced {
    std::unique_ptr<TracerThread> tracer;  // empty: not traced
    SelfTest test;
    ExactTime told;                     // counts since start, and state
    std::string disagreement;           // empty: none; else it stays off until resume()
    Nanoseconds mps_seen{0};            // steady; 0: never
    std::map<Pid, Presence> presences;  // with switches only
    bool was_on = false;
  };

  void end_traces();
  void add_trace(DeviceSample& device, bool scanned, Nanoseconds now);
  // Why this GPU must not be traced now; empty: no obstacle.
  std::string obstacle(Traced& traced, const DeviceSample& device, Nanoseconds now) const;
  // Why the trace must not be trusted; empty: it can be.
  std::string judge(Traced& traced, const DeviceSample& device, const std::vector<ResidencyBin>& bins, bool scanned,
                    Nanoseconds now);
  void take_counts(Traced& traced, const TraceReport& report);
  void forget_gone(Traced& traced, const DeviceSample& device, Nanoseconds now);
  void add_strangers(DeviceSample& device);
  void tell(Traced& traced, const DeviceDescription& gpu);

  std::unique_ptr<GpuSource> inner_;
  const std::shared_ptr<DriverDoor> door_;
  const ExactTimeOptions options_;
  const Clock& clock_;
  std::map<GpuUuid, Traced> gpus_;
  StateLog states_;
  bool scan_wanted_ = false;
};

}  // namespace gpuledger::switch_trace
