// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "model/sample.h"
#include "sample/nvml/nvml_calls.h"

namespace gpuledger::nvml {

struct UtilizationReply {
  UtilizationState state = UtilizationState::kFailed;
  Return result = kSuccess;
  std::vector<std::pair<Pid, EngineUse>> uses;  // by pid; processes not seen active are left out
};

// The processes that kept one GPU busy since the last read. The driver samples five times a second and returns means
// over all samples newer than a timestamp, so the reader must pass the right timestamp: an old one dilutes the means, a
// new one loses samples.
class UtilizationReader {
 public:
  // sample_interval: how much of the driver's history (14 s) the first reply may cover.
  UtilizationReply read(Session& session, Device device, Nanoseconds sample_interval);

  // Not read, because the GPU is idle. The samples are kept for the next read; if it names a process, that was active
  // later than this.
  void note_calm(Timestamp now);

  // Resets all: another driver, another MIG mode.
  void reset() { *this = UtilizationReader(); }

 private:
  enum class Interface { kUndecided, kNewer, kOlder, kNone };

  struct Entry {
    int64_t timestamp = 0;
    Pid pid = 0;
    unsigned sm = 0, memory = 0, encoder = 0, decoder = 0, jpeg = 0, ofa = 0;  // percent
  };
  struct Reply {
    Return result = kSuccess;
    std::vector<Entry> entries;
  };

  Reply fetch(Session& session, Device device, int64_t since);
  Reply fetch_newer(Session& session, Device device, int64_t since);
  Reply fetch_older(Session& session, Device device, int64_t since);
  Reply fetch_first(Session& session, Device device, Timestamp now, Nanoseconds interval);
  // Without invalid entries. latest: upper limit of the time.
  static std::vector<Entry> clean(Session& session, const std::vector<Entry>& entries, int64_t since, int64_t latest);

  int64_t driver_now(Timestamp now) const;
  // How far the wall clock was set since the offset was learned, us; 0: it was not.
  int64_t clock_step(Timestamp now) const;
  int64_t latest_possible(Timestamp now) const;
  bool history_is_torn(Timestamp now, bool anybody);
  void learn_offset(Timestamp now, int64_t newest);
  void note_idle(Timestamp now);
  double idle_scale(Timestamp now, int64_t since, const std::vector<Entry>& entries) const;

  Interface interface_ = Interface::kUndecided;
  unsigned capacity_ = 128;
  int64_t last_seen_ = 0;  // the driver's clock, us; 0: nothing seen yet
  // The driver's clock minus our steady one, us. It counts since 1970 on most machines, since boot on some; whether it
  // follows a wall clock change depends on the driver.
  std::optional<int64_t> offset_;
  Timestamp learned_;                      // when offset_ was
  std::optional<Nanoseconds> torn_since_;  // steady; the wall clock was set back, and no process named since
  std::optional<Nanoseconds> idle_since_;  // steady; no process named since
  std::optional<int64_t> idle_until_;      // the driver's clock; the last reply was idle up to here
  std::optional<Nanoseconds> previous_read_;
};

}  // namespace gpuledger::nvml
