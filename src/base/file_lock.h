#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace gpuledger {

// Says to other programs of this kind that a path is in use, by a file beside it. Let go by the system at any end, also
// at kill -9; the file is removed at an orderly one.
class FileLock {
 public:
  // The error: another program holds it. Null where no lock can be made there, which is for others to complain about.
  static Result<std::unique_ptr<FileLock>> take(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  FileLock(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  const int fd_;
};

}  // namespace gpuledger
