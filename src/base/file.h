// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace gpuledger {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// The kind of failure an errno stands for, and "what path: why", the way every file error of the program reads.
Error errno_error(std::string_view what, std::string_view path, int number);

// The whole file, or an error when it is longer than max_bytes: a cut file is never mistaken for a whole one.
// Works on /proc, where sizes say 0. A fifo or a device is refused and never waited for. The message names the path
// and the reason.
Result<std::string> read_file(const std::string& path, size_t max_bytes);

// All of it, out of the buffers.
Status write_to_stdout(std::string_view text);

// An error unless there is a regular file or nothing at all: a device, a pipe, a folder or a link that was named by
// mistake is never replaced, renamed or removed.
Status check_regular_or_absent(const std::string& path);

// A reader sees the old file or the whole new one, never a part. The temporary file lies hidden beside it
// (".NAME.XXXXXX", same file system, ignored by readers of *.prom) and is removed on failure. Only a regular file is
// replaced.
// kToSystem does not wait for the disk: that survives the program, but not a machine that loses power.
enum class Flush { kToDisk, kToSystem };
Status write_file_atomically(const std::string& path, std::string_view contents, mode_t mode = 0644,
                             Flush flush = Flush::kToDisk);
// Those of writers that were killed. One that is being written is left alone.
void remove_left_temporaries(const std::string& path);

}  // namespace gpuledger
