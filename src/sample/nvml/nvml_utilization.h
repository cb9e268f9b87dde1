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
  std::vector<std::pair<Pid, EngineUse>> uses;  // by pid; who is not in it was not caught working
};

// Which process one GPU was busy for since the last read. The driver samples five times a second and answers
// with means over all samples newer than a timestamp, so the reader must hand back the right timestamp: too
// old a one dilutes the means, too new a one loses samples.
class UtilizationReader {
 public:
  // sample_interval: how much of the driver's history (14 s) the first reply may speak for.
  UtilizationReply read(Session& session, Device device, Nanoseconds sample_interval);

  // Not read, because the GPU shows that nobody works. Samples are still there for the next read; if it names
  // somebody, that was not in this time.
  void note_calm(Timestamp now);

  // Forgets all: another driver, another MIG mode.
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
  // Without what the driver should not have said. latest: a sample can be.
  static std::vector<Entry> clean(Session& session, const std::vector<Entry>& entries, int64_t since, int64_t latest);

  int64_t driver_now(Timestamp now) const;
  // By how much the wall clock was set since the offset was learned, us; 0: it was not.
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
  // follows a wall clock that is set depends on the driver.
  std::optional<int64_t> offset_;
  Timestamp learned_;                      // when the offset was
  std::optional<Nanoseconds> torn_since_;  // steady; the wall clock was set back, and nobody was named since
  std::optional<Nanoseconds> idle_since_;  // steady; nobody named since then
  std::optional<int64_t> idle_until_;      // the driver's clock; the last reply named nobody up to here
  std::optional<Nanoseconds> previous_read_;
};

}  // namespace gpuledger::nvml
