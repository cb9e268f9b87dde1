#include "http/watched_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace gpuledger::http {
namespace {

constexpr size_t kMaxBytes = 1 << 20;

Error file_error(const std::string& path, int error) {
  Code code = Code::kUnavailable;
  if (error == ENOENT) code = Code::kNotFound;
  if (error == EACCES) code = Code::kPermission;
  return {code, fmt::format("cannot read {}: {}", path, std::strerror(error))};
}

}  // namespace

FileStamp read_file_stamp(const std::string& path) {
  FileStamp stamp{path, 0, 0, 0};
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return stamp;
  stamp.modified_ns = int64_t{file.st_mtim.tv_sec} * 1'000'000'000 + file.st_mtim.tv_nsec;
  stamp.size = static_cast<uint64_t>(file.st_size);
  stamp.inode = file.st_ino;
  return stamp;
}

Result<std::string> read_whole_file(const std::string& path) {
  // Non-blocking, so that a fifo given by mistake is an error and not a program that hangs.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return file_error(path, errno);
  std::string text(kMaxBytes + 1, '\0');
  size_t used = 0;
  int error = 0;
  while (used < text.size()) {
    const ssize_t got = ::read(fd, text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
    used += static_cast<size_t>(got);
  }
  ::close(fd);
  if (error != 0) return file_error(path, error);
  if (used > kMaxBytes)
    return Error{Code::kMalformed, fmt::format("cannot read {}: larger than {} bytes", path, kMaxBytes)};
  text.resize(used);
  return text;
}

}  // namespace gpuledger::http
