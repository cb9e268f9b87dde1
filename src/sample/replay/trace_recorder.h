// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "sample/nvml/nvml_calls.h"
#include "sample/nvml/nvml_gpm.h"
#include "sample/replay/trace.h"

namespace gpuledger::replay {

// Asks the driver about one GPU as often as it has something new to say, and gives the answers as the lines of a
// trace. Used by one thread.
class TraceRecorder {
 public:
  // How often poll() wants to be called: the counter's, the monitors' and half the utilisation samples' period.
  static constexpr Nanoseconds kPeriod = std::chrono::milliseconds(100);

  // Initialises the library and shuts it down with the object. index: the GPU's, as the driver counts them.
  static Result<std::unique_ptr<TraceRecorder>> open(nvml::Library library, unsigned index, const Clock& clock);
  ~TraceRecorder();
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  // The first line, then what is new at each poll. An error: this GPU says nothing (any more) that a ledger could
  // be kept from. What a call did not give is not in the trace, and neither is a call that failed this time.
  std::string device_line() const;
  Status poll(std::string& out);
  // Who was on the engine, as somebody else has read it (bins of the steady clock).
  void record_residency(std::vector<ResidencyBin> bins, std::string& out) const;
  const std::string& bus_address() const { return bus_address_; }
  // What the driver has gathered since the last poll that asked for it.
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
  Trace description_;  // only what the device line says
  std::string bus_address_;
  Timestamp began_;
  Timestamp now_;  // of this poll
  Nanoseconds t_{0};
  uint64_t polls_ = 0;
  bool mig_ = false;
  SampleClock tickets_;
  SampleClock power_;
};

}  // namespace gpuledger::replay
