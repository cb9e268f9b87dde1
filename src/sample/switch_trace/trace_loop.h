// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "sample/switch_trace/gpu_clock.h"
#include "sample/switch_trace/record_stream.h"
#include "sample/switch_trace/residency_builder.h"
#include "sample/switch_trace/trace_session.h"

namespace gpuledger::switch_trace {

struct TraceOptions {
  std::string bus_address;  // "00000000:3B:00.0"
  double budget = 1;        // share of the traced work that the trace may cost
};

// Results since the last report.
struct TraceReport {
  bool tracing = false;   // or between two bursts
  std::string trouble;    // why not
  bool given_up = false;  // retrying makes no sense
  std::vector<ResidencyBin> bins;
  uint64_t records = 0;
  uint64_t lost = 0;
  SwitchCounts counts;

  void add(TraceReport&& later);
};

// Reads the trace of one GPU step by step: opens it, polls it, repairs it. Counts the switches; while they cost more
// than the budget, it traces in bursts. Has no thread and does not sleep. Used by one thread.
class TraceLoop {
 public:
  TraceLoop(std::shared_ptr<DriverDoor> door, TraceOptions options, const Clock& clock);

  // One step; returns when the next is due (steady).
  Nanoseconds step();
  TraceReport take_report();
  // The GPU is shared, but no switch was seen: the next step flushes the driver's buffer.
  void suspect_silence() { flush_once_ = true; }

 private:
  Status open();
  Status begin_burst(Nanoseconds now);
  void end_burst(Nanoseconds now);
  // How long to pause now, so that the cost of the last two seconds comes down to the budget; 0: not at all.
  Nanoseconds weigh_cost(Nanoseconds now);
  Status poll(Nanoseconds now);
  Status compare_clocks(Nanoseconds now);
  Status read_records(Nanoseconds now);
  Status give_back(Nanoseconds now);
  void fail(const Error& error, Nanoseconds now);

  const std::shared_ptr<DriverDoor> door_;
  const TraceOptions options_;
  const Clock& clock_;
  std::unique_ptr<TraceSession> session_;
  GpuClock gpu_clock_;
  RecordStream stream_;
  ResidencyBuilder builder_;
  std::vector<SwitchRecord> records_;
  bool tracing_ = false;
  bool resting_ = false;  // between two bursts
  bool given_up_ = false;
  bool flush_once_ = false;
  bool flush_always_ = false;
  std::string trouble_;
  Nanoseconds retry_at_{0};
  Nanoseconds retry_delay_{0};
  Nanoseconds paused_until_{0};
  // Of the cost that is being counted.
  Nanoseconds counted_since_{0};
  uint64_t counted_records_ = 0;
  Nanoseconds last_poll_{0};
  Nanoseconds last_given_back_{0};
  // At the last report.
  uint64_t reported_records_ = 0;
  uint64_t reported_lost_ = 0;
};

}  // namespace gpuledger::switch_trace
