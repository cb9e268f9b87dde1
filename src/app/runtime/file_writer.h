// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "model/sample.h"
#include "task/worker.h"

namespace gpuledger::app {

// One file, written again and again by a thread of its own: a disk takes as long as it likes, and the sampler cannot
// wait. A text that is not yet being written when the next one comes is dropped for it.
class FileWriter {
 public:
  using Text = std::shared_ptr<const std::string>;
  using Write = std::function<Status(const std::string& path, std::string_view text)>;

  // source: the name in health(). write: must own what it uses, for it may outlive this object in a file system that
  // hangs.
  FileWriter(std::string source, std::string path, Write write);
  ~FileWriter();  // finishes, but waits a short while only
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void post(Text text);
  // False: not all that was posted is written.
  bool wait(Nanoseconds patience);
  // Of the writes that are over.
  SourceHealth health() const;

  // These end the thread; what is posted afterwards is dropped. False: the file system hangs, and the thread, since a
  // write cannot be called back, is left to it.
  // Writes what waits.
  bool finish(Nanoseconds patience);
  // Drops what waits and removes the file. Nothing is written after the removal.
  bool remove(Nanoseconds patience);

 private:
  struct Shared;
  static void write_pending(Shared& shared);

  std::shared_ptr<Shared> shared_;
  task::Worker worker_;
};

}  // namespace gpuledger::app
