// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "model/sample.h"
#include "sample/nvml/nvml_calls.h"

namespace gpuledger::nvml {

// Readings of one GPU between two batches, ten times a second: its processes, and how busy its parts were. The calls
// are cheap (lists 0.03 ms, monitors 0.05 ms on an H200).
class Glances {
 public:
  void note_lists(const std::vector<ProcessSample>& listed, Nanoseconds now);
  void note_activity(const Activity& activity, std::optional<double> sm_clock_mhz, Nanoseconds now);

  // Adds what was seen since the last batch: readings, when each process came or left, and exited processes. listed:
  // the current list. Nothing without glances.
  void hand_on(Session& session, Device device, const std::vector<ProcessSample>& listed, DeviceSample& out);
  void reset();

 private:
  struct Stay {
    ProcessSample process;
    std::optional<Nanoseconds> came;
    std::optional<Nanoseconds> left;
  };

  void read_power(Session& session, Device device, DeviceSample& out);
  static void add_stay(const Stay& stay, DeviceSample& out);

  bool any_ = false;  // since the last batch
  std::vector<Stay> stays_;
  std::vector<ActivityReading> readings_;
  uint64_t power_seen_ = 0;              // the driver's stamp of the last sample, us
  std::optional<int64_t> power_offset_;  // our clock less the driver's, us: the smallest seen
};

}  // namespace gpuledger::nvml
