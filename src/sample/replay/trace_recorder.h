// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "sample/nvml/nvml_calls.h"
#include "sample/nvml/nvml_gpm.h"
#include "sample/replay/trace.h"

namespace gpuledger::replay {

// Reads one GPU as often as the driver has new data, and returns the lines of a recording. Used by one thread.
class TraceRecorder {
 public:
  // The period of poll(): that of the counter and the monitors, and half that of the utilization samples.
  static constexpr Nanoseconds kPeriod = std::chrono::milliseconds(100);

  // Initializes the library; the destructor shuts it down. index: the driver's index of the GPU.
  static Result<std::unique_ptr<TraceRecorder>> open(nvml::Library library, unsigned index, const Clock& clock);
  ~TraceRecorder();
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  // The first line, then the new lines of each poll. Error: this GPU gives no data (any more) that a ledger needs.
  // Values that are missing or fail are not in the recording.
  std::string device_line() const;
  Status poll(std::string& out);
  // Residency bins, read by another object (on the steady clock).
  void record_residency(std::vector<ResidencyBin> bins, std::string& out) const;
  const std::string& bus_address() const { return bus_address_; }
  // Of the last poll: its time, the same in the recording, and the processes in the last list or in its samples.
  const Timestamp& polled_at() const { return now_; }
  Nanoseconds t() const { return t_; }
  std::set<Pid> pids() const;
  // The driver's samples since the last poll that read them.
  void finish(std::string& out);

 private:
  TraceRecorder(nvml::Library library, const Clock& clock);
  nvml::Session session() { return {library_.functions, calls_}; }
  Status find_device(unsigned index);
  void describe_device();

  // The driver stamps its samples by the wall clock (since 1970) on most machines, since boot on some.
  struct SampleClock {
    uint64_t last_seen = 0;         // the driver's, us
    std::optional<int64_t> offset;  // ours minus the driver's, us; empty: not known yet
  };
  Nanoseconds trace_time(SampleClock& clock, uint64_t stamp);

  Status record_counter(std::string& out);
  void record_tickets(std::string& out);
  std::vector<nvml::ProcessUtilizationSample> fetch_tickets();
  std::vector<nvml::ProcessUtilizationSample> fetch_tickets_newer();
  void record_listing(std::string& out);
  void record_state(std::string& out);
  void record_activity(std::string& out);
  void record_power(std::string& out);

  nvml::Library library_;
  nvml::Calls calls_;
  nvml::Device device_ = nullptr;
  nvml::GpmReader gpm_;
  Trace description_;  // only the device line's values
  std::string bus_address_;
  Timestamp began_;
  Timestamp now_;  // of this poll
  Nanoseconds t_{0};
  uint64_t polls_ = 0;
  bool mig_ = false;
  std::set<Pid> listed_;   // in the last list
  std::set<Pid> sampled_;  // in the last poll's tickets
  SampleClock tickets_;
  SampleClock power_;
};

}  // namespace gpuledger::replay
