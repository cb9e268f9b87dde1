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

// One file, rewritten by its own thread: a disk may be slow, and the sampler cannot wait. A text that is still waiting
// when the next one comes is replaced by it.
class FileWriter {
 public:
  using Text = std::shared_ptr<const std::string>;
  using Write = std::function<Status(const std::string& path, std::string_view text)>;

  // source: the name in health(). write: must own what it uses, because it may outlive this object if a file system
  // hangs.
  FileWriter(std::string source, std::string path, Write write);
  ~FileWriter();  // finishes, with a short timeout
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void post(Text text);
  // False: some posted text is unwritten.
  bool wait(Nanoseconds patience);
  // Of the finished writes.
  SourceHealth health() const;

  // These end the thread; later posts are dropped. False: the file system hangs, and the thread is left behind, because
  // a write cannot be cancelled. Writes what is pending.
  bool finish(Nanoseconds patience);
  // Drops the pending text and removes the file. Nothing is written after that.
  bool remove(Nanoseconds patience);

 private:
  struct Shared;
  static void write_pending(Shared& shared);

  std::shared_ptr<Shared> shared_;
  task::Worker worker_;
};

}  // namespace gpuledger::app
