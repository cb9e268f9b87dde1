// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"

namespace gpuledger {

// A process's time on the GPU's engine, from the driver's context-switch trace. A context stays on the engine until
// another one needs it, even without work, so this is an upper bound of the process's busy time.
struct Residency {
  Pid pid = 0;
  Nanoseconds resident{0};
  // The part of `resident` in slices that ended because another context waited: the context was preempted or yielded at
  // once, so this is busy time. Empty: a recording without it.
  std::optional<Nanoseconds> contended;
  friend bool operator==(const Residency&, const Residency&) = default;
};

// A short interval that is completely known. The rest of `width` is switching, or the engine was empty. Intervals that
// are not completely known have no bin.
struct ResidencyBin {
  Nanoseconds end{0};  // steady
  Nanoseconds width{0};
  std::vector<Residency> residents;  // by pid, none with zero time
  friend bool operator==(const ResidencyBin&, const ResidencyBin&) = default;
};

// State of the trace of one GPU. Counts are since the program started and never fall.
struct ExactTime {
  bool trusted = false;
  std::string reason;  // why not; while trusted: a remark, or empty
  uint64_t records_read = 0;
  uint64_t records_lost = 0;
  uint64_t switches = 0;                        // a context got the engine
  std::map<Pid, uint64_t> switches_by_process;  // running processes, and recently exited ones
  Nanoseconds switching{0};                     // between two contexts: of no process
  Nanoseconds unknown{0};                       // traced, of unknown processes
};

}  // namespace gpuledger
