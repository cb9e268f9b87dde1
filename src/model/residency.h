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

// Who was on the GPU's engine, from the driver's trace of context switches. Being on the engine is not working: a
// context stays there until another one wants the engine, so this is an upper bound of a process's busy time.
struct Residency {
  Pid pid = 0;
  Nanoseconds resident{0};
  // Of that, what lies in slices that ended because another context was waiting: it was pushed off or gave way at once,
  // so all of this is busy time. Empty: a recording that does not say.
  std::optional<Nanoseconds> contended;
  friend bool operator==(const Residency&, const Residency&) = default;
};

// One short piece of time of which everything is known. What is missing from `width` is switching, or nobody was on the
// engine. Time of which something is not known has no bin: a bin that is not there says nothing.
struct ResidencyBin {
  Nanoseconds end{0};  // steady
  Nanoseconds width{0};
  std::vector<Residency> residents;  // by pid, each with some time
  friend bool operator==(const ResidencyBin&, const ResidencyBin&) = default;
};

// How the trace of one GPU is doing. Counts are since the program began and never fall.
struct ExactTime {
  bool trusted = false;
  std::string reason;  // why not, in words; while trusted: what there is to say, or empty
  uint64_t records_read = 0;
  uint64_t records_lost = 0;
  uint64_t switches = 0;                        // a context got the engine
  std::map<Pid, uint64_t> switches_by_process;  // processes of now, and those that left a short time ago
  Nanoseconds switching{0};                     // between two contexts: belongs to nobody
  Nanoseconds unknown{0};                       // traced, but not known whose
};

}  // namespace gpuledger
