// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "model/sample.h"
#include "sample/nvml/nvml_calls.h"

namespace gpuledger::nvml {

struct ShortLife {
  Pid pid = 0;
  double busy_seconds = 0;  // on the GPU, over its life
  std::optional<Bytes> memory;
};

// Processes that started and exited between two reads, from the driver's statistics, which include exited processes
// while accounting mode is on. A process is new by the last read and by its length; the driver's clock is never
// compared with ours.
class AccountingReader {
 public:
  // A pid from a list or a utilization sample: booked by that, never by read().
  void note_seen(Pid pid) { seen_.insert(pid); }

  // The first read only collects earlier processes.
  std::vector<ShortLife> read(Session& session, Device device);

  // Resets all: another driver, accounting switched off.
  void reset() { *this = AccountingReader(); }

 private:
  std::optional<std::vector<unsigned>> read_pids(Session& session, Device device);

  std::map<Pid, unsigned long long> starts_;  // of the last read, running or exited; 0: not read or failed
  std::optional<Nanoseconds> read_at_;        // steady
  std::set<Pid> seen_;                        // since the last read
  bool unsupported_ = false;
};

}  // namespace gpuledger::nvml
