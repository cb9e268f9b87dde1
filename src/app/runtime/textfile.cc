// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/textfile.h"

#include "base/file.h"

namespace gpuledger::app {

Status Textfile::write(const std::string& path, std::string_view text) {
  if (!lock_ || !lock_->held()) {
    lock_.reset();
    auto lock = FileLock::take(path + ".lock");
    if (lock.ok()) {
      lock_ = std::move(*lock);
    } else if (lock.error().code == Code::kUnavailable) {
      return Error{Code::kUnavailable, path + " is used by another gpu-ledger; give this one its own file"};
    }
  }
  return write_file_atomically(path, text, mode_);
}

}  // namespace gpuledger::app
