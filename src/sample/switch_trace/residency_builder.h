// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "model/residency.h"

namespace gpuledger::switch_trace {

// A context got the engine, or left it.
struct SwitchEvent {
  bool start = false;
  Nanoseconds at{0};  // steady
  Pid pid = 0;
  uint32_t context = 0;
  uint16_t engine = 0;  // each MIG instance has its own engine, all in one ring
};

// Counts since the last call.
struct SwitchCounts {
  uint64_t switches = 0;
  std::map<Pid, uint64_t> switches_by_process;
  Nanoseconds switching{0};
  Nanoseconds unknown{0};
  uint64_t doubtful = 0;  // an event did not fit the one before
  uint64_t late = 0;      // came after its time was decided
};

// Makes bins from switches. Pure: no clock, no driver. Uncertain time is unknown and never booked to a process; a bin
// with unknown time in it is not returned.
class ResidencyBuilder {
 public:
  static constexpr Nanoseconds kBin = std::chrono::milliseconds(20);
  // A time slice is 2 ms; with preemption and saving it takes 2.15 to 2.22 ms. Longer ones contain time in which no
  // other context waited.
  static constexpr Nanoseconds kLongestContended = std::chrono::microseconds(2250);
  // A switch takes about 0.1 ms. A much longer gap means that no context wanted the engine.
  static constexpr Nanoseconds kLongestSwitch = std::chrono::milliseconds(1);

  // Tracing starts. The occupant is unknown until the first event; an earlier event counts as of now.
  void begin(Nanoseconds at);
  // Tracing ends.
  void end(Nanoseconds at);
  void take(const SwitchEvent& event);
  // Events before the next one are missing (records lost, engine reset, clock set).
  void lose_track();
  // No event before this time will follow.
  void complete_until(Nanoseconds at);

  // The bins that became complete since the last call.
  std::vector<ResidencyBin> take_bins();
  SwitchCounts take_counts();
  // Everything is decided up to this time; an event before it is late.
  Nanoseconds decided_until() const { return decided_; }

 private:
  enum class State { kUnknown, kOccupied, kVacated };
  // One engine: the whole GPU's, or a MIG instance's.
  struct Engine {
    State state = State::kUnknown;
    Pid pid = 0;
    uint32_t context = 0;
    Nanoseconds since{0};     // the event that led to the state
    Nanoseconds booked{0};    // its time is in the bins up to here
    Nanoseconds occupied{0};  // kVacated: start of the slice that ended
  };
  struct OpenBin {
    bool unknown = false;
    std::map<Pid, Residency> residents;
  };

  Engine& engine_of(const SwitchEvent& event);
  void start(Engine& engine, const SwitchEvent& event);
  void vacate(Engine& engine, const SwitchEvent& event);
  void book_slice(Engine& engine, Nanoseconds until, bool contended);
  void book_unknown(Nanoseconds from, Nanoseconds to);
  void book_resident(Pid pid, Nanoseconds from, Nanoseconds to, bool contended);
  Nanoseconds settle(Engine& engine, Nanoseconds at);
  template <typename Each>
  void for_each_bin(Nanoseconds from, Nanoseconds to, Each each);

  bool tracing_ = false;
  Nanoseconds began_{0};
  Nanoseconds decided_{0};
  Nanoseconds unknown_from_{0};  // without an engine: time is in the bins up to here
  std::map<uint16_t, Engine> engines_;
  std::map<int64_t, OpenBin> bins_;  // by number: steady time divided by the width
  int64_t next_bin_ = 0;
  std::vector<ResidencyBin> done_;
  SwitchCounts counts_;
};

}  // namespace gpuledger::switch_trace
