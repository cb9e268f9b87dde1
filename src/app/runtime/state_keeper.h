// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "app/runtime/file_writer.h"
#include "attribute/state/state.h"
#include "base/clock.h"
#include "base/file_lock.h"
#include "base/result.h"
#include "model/sample.h"

namespace gpuledger::app {

// Keeps the ledger's memory in --state-file and beside it. Used by one thread; the disk has threads of its own.
class StateKeeper {
 public:
  // Files that cannot be used are set aside with a warning. The error: the path is no place for a state, or another
  // program keeps its own there.
  static Result<std::unique_ptr<StateKeeper>> open(const std::string& path, mode_t mode, const Clock& clock);
  ~StateKeeper();

  // What the last program left, once; empty if nothing.
  attribute::EngineState take_found();

  // Before anybody sees the books, so that whoever comes next knows all that was shown. Waits for the system to take
  // it, but not for ever: with a file system that hangs the books go on, and only its memory is at stake. Every ten
  // seconds also to the disk, in the background; the first time here and now, so that health() tells of a wrong path.
  // Nothing more is written once another program has taken the file over, which takes somebody who removes its lock.
  void keep(const attribute::EngineState& state, Nanoseconds now);

  // The last state to the disk. False: the file system hangs.
  bool finish(Nanoseconds patience);

  SourceHealth health() const;

 private:
  StateKeeper(const std::string& path, mode_t mode);
  bool still_ours();

  std::string path_;
  std::unique_ptr<FileLock> lock_;
  std::string taken_over_;  // by whom the path is kept now; empty: by us
  attribute::EngineState found_;
  std::unique_ptr<FileWriter> recent_;
  std::unique_ptr<FileWriter> durable_;
  std::shared_ptr<const std::string> last_;
  std::optional<Nanoseconds> last_durable_;
};

// /proc/sys/kernel/random/boot_id; empty where it cannot be read.
std::string read_boot_id();

}  // namespace gpuledger::app
