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

// Writes the ledger's state to --state-file and FILE.recent. Used by one thread; writes have their own threads.
class StateKeeper {
 public:
  // The error in its health if the state cannot be read back.
  static constexpr const char* kUnreadable = "unreadable";

  // Unusable files are set aside with a warning. Error: the path is not usable for a state, or another program uses it.
  static Result<std::unique_ptr<StateKeeper>> open(const std::string& path, mode_t mode, const Clock& clock);
  ~StateKeeper();

  // The state of the last program, once; empty if none.
  attribute::EngineState take_found();

  // Call before the books are published, so that the next program knows all that was shown. Waits for the write, but
  // with a limit: if the file system hangs, the books go on and only the saved state is at risk. Every ten seconds also
  // to the disk, in the background; the first time synchronously, so that health() reports a wrong path. Writing stops
  // if another program has taken the file over, which needs a removed lock, and while the state cannot be read back.
  void keep(const attribute::EngineState& state, Nanoseconds now);

  // Writes the last state to the disk. False: it hangs.
  bool finish(Nanoseconds patience);

  SourceHealth health() const;

 private:
  StateKeeper(const std::string& path, mode_t mode);
  bool still_ours();
  void check_readable();

  std::string path_;
  std::unique_ptr<FileLock> lock_;
  std::string taken_over_;  // the error if another program uses the path now; empty: we do
  attribute::EngineState found_;
  std::unique_ptr<FileWriter> recent_;
  std::unique_ptr<FileWriter> durable_;
  std::string unreadable_;  // why the last state that was checked cannot be read back; empty: it can
  uint64_t times_unreadable_ = 0;
  std::shared_ptr<const std::string> last_;
  std::optional<Nanoseconds> last_durable_;
};

// /proc/sys/kernel/random/boot_id; empty if unreadable.
std::string read_boot_id();

}  // namespace gpuledger::app
