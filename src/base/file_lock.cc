#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace gpuledger {
namespace {

// Another program may remove the file between our opening and locking it: then the lock is on nothing, and once more.
constexpr int kMostAttempts = 5;

}  // namespace

Result<std::unique_ptr<FileLock>> FileLock::take(const std::string& path) {
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) return std::unique_ptr<FileLock>();
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      const bool taken = errno == EWOULDBLOCK;
      ::close(fd);
      if (taken) return Error{Code::kUnavailable, path + " is held by another program"};
      return std::unique_ptr<FileLock>();  // a file system without locks
    }
    struct stat status {};
    if (::fstat(fd, &status) == 0 && status.st_nlink > 0) return std::unique_ptr<FileLock>(new FileLock(path, fd));
    ::close(fd);
  }
  return std::unique_ptr<FileLock>();
}

FileLock::~FileLock() {
  ::unlink(path_.c_str());  // while it is ours
  ::close(fd_);
}

}  // namespace gpuledger
