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

// The error for an errno, with the message "what path: why" that all file errors have.
Error errno_error(std::string_view what, std::string_view path, int number);

// The whole file, or an error if it is longer than max_bytes: a truncated file is never returned. Works on /proc, where
// sizes are 0. A fifo or a device is an error at once. The message has the path and the reason.
Result<std::string> read_file(const std::string& path, size_t max_bytes);

// Writes all and flushes.
Status write_to_stdout(std::string_view text);

// An error unless there is a regular file or nothing: a device, a pipe, a folder or a link that was named by mistake is
// never replaced, renamed or removed.
Status check_regular_or_absent(const std::string& path);

// The new contents of a file while they are written: hidden beside it (".NAME.XXXXXX", same file system, ignored by
// readers of *.prom), and locked as long as fd is open: see remove_left_temporaries.
struct TemporaryFile {
  std::string path;
  UniqueFd fd;
};
// Mode 0600. An error unless the path may be written: it names a regular file or nothing.
Result<TemporaryFile> open_temporary_beside(const std::string& path);
// Gives the closed temporary file the name of the path, if that is still allowed. It is removed on failure.
Status rename_temporary(const std::string& temporary, const std::string& path);

// A reader sees the old file or the whole new one, never a part: it is written as a temporary file first. Only a
// regular file is replaced. kToSystem does not wait for the disk: the file survives the program, but not a power loss.
enum class Flush { kToDisk, kToSystem };
Status write_file_atomically(const std::string& path, std::string_view contents, mode_t mode = 0644,
                             Flush flush = Flush::kToDisk);
// Removes temporary files that killed writers left. One that is being written is kept.
void remove_left_temporaries(const std::string& path);

}  // namespace gpuledger
