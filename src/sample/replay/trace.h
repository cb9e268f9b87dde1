// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/units.h"
#include "model/owner.h"
#include "model/sample.h"

namespace gpuledger::replay {

// Longest text of a line of k "process".
inline constexpr size_t kMostNameBytes = 256;

// A recording of one GPU's driver data, each kind sorted by time. Times count from the start of the recording. Values
// that the driver did not give are empty.
struct Trace {
  struct Counter {
    Nanoseconds t{0};
    uint64_t millijoules = 0;
    std::optional<uint32_t> milliwatts;
  };
  // One utilization sample of the driver and the process it names, in percent.
  struct Ticket {
    Nanoseconds t{0};  // when the driver took it
    Pid pid = 0;
    uint32_t sm = 0, memory = 0, encoder = 0, decoder = 0;
  };
  struct Holder {
    Pid pid = 0;
    std::optional<Bytes> memory;
  };
  struct Listing {
    Nanoseconds t{0};
    std::vector<Holder> compute, mps;
  };
  // What a process was called from then on. Of the owner only the fields that make kin (kOwnerKinds), plain or hashed.
  struct Process {
    Nanoseconds t{0};
    Pid pid = 0;
    Name name;
    Owner owner;
  };
  struct State {
    Nanoseconds t{0};
    std::optional<uint32_t> gpu_percent, memory_percent, sm_mhz, memory_mhz, celsius;
    std::optional<uint64_t> event_reasons, memory_used;
  };
  struct Busy {
    Nanoseconds t{0};
    Activity activity;  // since the one before
  };
  struct Watts {
    Nanoseconds t{0};
    uint32_t milliwatts = 0;
  };
  struct Resident {
    Nanoseconds t{0};  // the bin's end
    ResidencyBin bin;  // its times count from the start of the recording, as t does
  };

  std::string name, uuid, driver;
  std::optional<uint64_t> memory_total;
  std::optional<uint32_t> limit_milliwatts;
  Nanoseconds length{0};
  std::vector<Counter> counters;  // never empty
  std::vector<Ticket> tickets;
  std::vector<Listing> listings;
  std::vector<Process> processes;  // empty: recorded without names
  std::vector<State> states;
  std::vector<Busy> activities;
  std::vector<Watts> power;
  std::vector<Resident> residency;  // empty: recorded without the trace
};

// The error is one line: source, line, problem. Lines of unknown kinds are ignored.
Result<Trace> parse_trace(std::string_view text, const std::string& source);
// Plain or gzipped.
Result<Trace> read_trace(const std::string& path);

}  // namespace gpuledger::replay
