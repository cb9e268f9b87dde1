// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/file_lock.h"
#include "base/result.h"

namespace gpuledger::app {

// Writes --textfile while no other program does. The first to write has it until it ends; then another takes over, as
// in an update that starts the new program before the old one ends. Used by one thread.
class Textfile {
 public:
  explicit Textfile(mode_t mode) : mode_(mode) {}

  // Where nothing can be locked (rights, a file system without locks), it is written all the same.
  Status write(const std::string& path, std::string_view text);

 private:
  mode_t mode_;
  std::unique_ptr<FileLock> lock_;  // of PATH.lock, which node_exporter does not read
};

}  // namespace gpuledger::app
