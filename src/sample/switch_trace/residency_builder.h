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
  uint16_t engine = 0;  // MIG instances have engines of their own, and all of them come in one ring
};

// What happened since it was last asked for.
struct SwitchCounts {
  uint64_t switches = 0;
  std::map<Pid, uint64_t> switches_by_process;
  Nanoseconds switching{0};
  Nanoseconds unknown{0};
  uint64_t doubtful = 0;  // an event did not fit the one before
  uint64_t late = 0;      // came after its time was handed on
};

// Makes bins of switches. Pure: no clock, no driver. What is not certain is unknown and never booked to a process; a
// bin with anything unknown in it is not handed on.
class ResidencyBuilder {
 public:
  static constexpr Nanoseconds kBin = std::chrono::milliseconds(20);
  // A time slice is 2 ms; with preemption and saving it comes to 2.15 to 2.22 ms. Longer ones hold time in which
  // nobody else wanted the engine.
  static constexpr Nanoseconds kLongestContended = std::chrono::microseconds(2250);
  // From one context to the next takes about 0.1 ms. Much longer means that nobody wanted the engine.
  static constexpr Nanoseconds kLongestSwitch = std::chrono::milliseconds(1);

  // Traced from here on. Who is on the engine is unknown until the first event; an event from before counts as of here.
  void begin(Nanoseconds at);
  // Not traced from here on.
  void end(Nanoseconds at);
  void take(const SwitchEvent& event);
  // Something is missing before the next event (records were lost, the engine was reset, the clock was set).
  void lose_track();
  // No event from before this moment will come any more.
  void complete_until(Nanoseconds at);

  // The bins that became complete since the last call.
  std::vector<ResidencyBin> take_bins();
  SwitchCounts take_counts();
  // The time up to which everything is decided; an event from before it comes late.
  Nanoseconds decided_until() const { return decided_; }

 private:
  enum class State { kUnknown, kOccupied, kVacated };
  // One engine: the whole GPU's, or a MIG instance's.
  struct Engine {
    State state = State::kUnknown;
    Pid pid = 0;
    uint32_t context = 0;
    Nanoseconds since{0};     // the event that led to the state
    Nanoseconds booked{0};    // up to here its time is in the bins
    Nanoseconds occupied{0};  // kVacated: when the slice that ended had begun
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
  Nanoseconds unknown_from_{0};  // while there is no engine yet: up to here that time is in the bins
  std::map<uint16_t, Engine> engines_;
  std::map<int64_t, OpenBin> bins_;  // by number: the time since the steady clock's start, in widths
  int64_t next_bin_ = 0;
  std::vector<ResidencyBin> done_;
  SwitchCounts counts_;
};

}  // namespace gpuledger::switch_trace
