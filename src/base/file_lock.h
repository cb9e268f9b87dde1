// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace gpuledger {

// Marks a path as in use for other instances of this program, by a file beside it. The system releases the lock at any
// exit, even kill -9; a normal exit removes the file.
class FileLock {
 public:
  // Error: another program holds it, or the path is not a lock (a link, a folder, another program's file). Null if the
  // file cannot be created there (the caller's own write reports that) and on a file system without locks.
  static Result<std::unique_ptr<FileLock>> take(const std::string& path);
  ~FileLock();
  // False: the file was removed or replaced, so another program may have locked the new one.
  bool held() const;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  FileLock(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  const int fd_;
  bool ours_ = false;  // true: locked, not only open
};

}  // namespace gpuledger
