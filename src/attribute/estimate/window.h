// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "attribute/estimate/signature_belief.h"
#include "attribute/estimate/timeline.h"

namespace gpuledger::attribute {

// Processes on the GPU together. A roster has usual shares of time.
struct Roster {
  struct Seat {
    uint64_t account = 0;
    uint64_t owner = 0;
    ProcKey process;
    std::shared_ptr<SignatureBelief> belief;
  };
  struct Table {
    std::vector<Seat> seats;
    std::vector<uint32_t> by_owner;  // the seats in order of their owners
  };
  const std::vector<Seat>& seats() const { return table->seats; }

  // Shared with the next roster of the same processes: if their shares change all the time, each window has its own.
  std::shared_ptr<const Table> table;
  std::vector<double> facts;  // for each seat: samples for its share, with decay
  bool mps = false;
  bool over = false;  // the shares changed: the processes get a new roster
  double at = 0;      // end of its last window
};

// One window of the history, kept so that it can be estimated again.
struct Window {
  struct Part {
    double time = 0;  // estimated share of the window, in cycles of the reference clock
    double joules = 0;
    double error = 0;  // of the joules, one standard error
    double share = 0;  // of the time, by the time evidence alone
    double share_variance = 0;
    double traced_time = 0;
    double traced_idle = 0;
    Message message;
  };
  struct OwnerError {
    uint64_t owner = 0;
    double error = 0;
  };

  std::shared_ptr<Roster> roster;
  double end = 0;
  double seconds = 0;
  double joules = 0;
  double busy = 1;     // in cycles of the reference clock
  size_t windows = 1;  // more than one: it is their mean, see mean_window.h
  bool traced = false;
  bool blind = false;
  uint64_t revision = 0;  // of all beliefs when it was estimated
  Features shown = Features::Zero();
  Features variance = Features::Zero();  // of `shown`; very large if a value is unknown
  std::vector<Part> parts;
  std::vector<OwnerError> owner_errors;
};

}  // namespace gpuledger::attribute
