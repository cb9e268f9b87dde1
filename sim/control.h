// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "scenario.h"

namespace gpuledger::sim {

// Faults that a test switches on and off while the node runs, by lines in a file (README.md). A command begins when the
// simulator first sees its line and ends when it sees that the line is gone. What was seen, and when, is written to a
// second file, because the library may be unloaded and loaded again: the node then has the same past.
class Control {
 public:
  // path: empty if there is no control. epoch_micros: the time 0 of this node.
  Control(std::string path, int64_t epoch_micros);

  // Applies what changed since the last look, and says from which moment on the scenario is another; empty: it is the
  // same.
  std::optional<Millis> look(Millis now, Scenario* scenario);
  // What is wrong in the file, in one line; empty: nothing.
  const std::string& error() const { return error_; }
  // For a test that waits until a call hangs, or was made: "hangs nvmlInit_v2".
  void tell(const std::string& what) const;

 private:
  // How many faults, latencies, reloads and processes the scenario had before and after it: what it added ends with it.
  using Sizes = std::array<size_t, 5>;
  struct Command {
    std::string line;
    Sizes first{}, last{};
  };
  class Journal;

  bool file_changed();
  Status take_changes(Millis now, Scenario* scenario, std::optional<Millis>* earliest);
  Status take(const std::string& entry, Scenario* scenario, std::optional<Millis>* earliest);
  Status begin(const std::string& line, Millis at, Scenario* scenario);
  void end(const std::string& line, Millis at, Scenario* scenario);

  const std::string path_;
  const std::string seen_path_;
  const int64_t epoch_micros_;
  struct stat stamp_ {};
  std::optional<std::string> text_;  // of the file; empty until it was read
  size_t followed_ = 0;              // entries of the journal
  std::vector<Command> active_;
  std::string error_;
};

}  // namespace gpuledger::sim
