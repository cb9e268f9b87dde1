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
  double busy_seconds = 0;  // on the GPU, over all its life
  std::optional<Bytes> memory;
};

// Processes that came and went between two reads, from the statistics the driver keeps also of the dead while
// accounting mode is on. Whether a life is new is told by what the last read said and by its length, never by
// comparing the driver's clock with ours.
class AccountingReader {
 public:
  // Somebody a list or a utilisation sample named: booked that way, never by read().
  void note_seen(Pid pid) { seen_.insert(pid); }

  // The first read only learns who was there before.
  std::vector<ShortLife> read(Session& session, Device device);

  // Forgets all: another driver, accounting switched off.
  void reset() { *this = AccountingReader(); }

 private:
  std::optional<std::vector<unsigned>> read_pids(Session& session, Device device);

  std::map<Pid, unsigned long long> starts_;  // of the last read, running or dead; 0: not asked, or no answer
  std::optional<Nanoseconds> read_at_;        // steady
  std::set<Pid> seen_;                        // since the last read
  bool unsupported_ = false;
};

}  // namespace gpuledger::nvml
