// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace gpuledger {

// Says to other programs of this kind that a path is in use, by a file beside it. Let go by the system at any end, also
// at kill -9; the file is removed at an orderly one.
class FileLock {
 public:
  // The error: another program holds it, or something is there that is no lock (a link, a folder, somebody else's
  // file). Null where nothing can be made there, which is for others to complain about, and on a file system without
  // locks.
  static Result<std::unique_ptr<FileLock>> take(const std::string& path);
  ~FileLock();
  // False: the file was removed or replaced, so that another program may have taken the new one.
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
