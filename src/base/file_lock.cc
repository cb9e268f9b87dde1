// SPDX-License-Identifier: Apache-2.0
#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"

namespace gpuledger {
namespace {

// Another program may remove the file between our open and our lock: then the lock is void, and we try again.
constexpr int kMostAttempts = 5;

}  // namespace

Result<std::unique_ptr<FileLock>> FileLock::take(const std::string& path) {
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) {
      const int why = errno;
      struct stat entry {};
      if (::lstat(path.c_str(), &entry) == 0) return errno_error("cannot lock", path, why);
      return std::unique_ptr<FileLock>();
    }
    std::unique_ptr<FileLock> lock(new FileLock(path, fd));
    struct stat file {};
    if (::fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) {
      return Error{Code::kMalformed, "cannot lock " + path + ": not a regular file"};
    }
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      const bool taken = errno == EWOULDBLOCK;
      if (taken) return Error{Code::kUnavailable, path + " is held by another program"};
      return std::unique_ptr<FileLock>();
    }
    lock->ours_ = true;
    if (lock->held()) return lock;
  }
  return Error{Code::kUnavailable, "cannot lock " + path + ": it is removed again and again"};
}

bool FileLock::held() const {
  struct stat named {};
  struct stat open {};
  return ::lstat(path_.c_str(), &named) == 0 && ::fstat(fd_, &open) == 0 && named.st_dev == open.st_dev &&
         named.st_ino == open.st_ino;
}

FileLock::~FileLock() {
  if (ours_ && held()) ::unlink(path_.c_str());
  ::close(fd_);
}

}  // namespace gpuledger
