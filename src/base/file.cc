// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace gpuledger {
namespace {

Code code_of_errno(int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR:
    case ESRCH: return Code::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS: return Code::kPermission;
    case EISDIR:
    case ENAMETOOLONG:
    case ELOOP: return Code::kMalformed;
    default: return Code::kUnavailable;
  }
}

constexpr std::string_view kRandomPart = "XXXXXX";  // for mkstemp

// "FOLDER/.NAME."
std::string temporary_prefix(const std::string& path) {
  const size_t slash = path.rfind('/');
  const size_t name_at = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(0, name_at) + "." + path.substr(name_at) + ".";
}

// 0, or the errno of the failure.
int write_all(int fd, std::string_view contents) {
  while (!contents.empty()) {
    const ssize_t written = ::write(fd, contents.data(), contents.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    contents.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

int fill_and_close(UniqueFd fd, std::string_view contents, mode_t mode, Flush flush) {
  if (const int failed = write_all(fd.get(), contents)) return failed;
  if (::fchmod(fd.get(), mode) != 0) return errno;  // not through the umask, which would hide it from other users
  // Else a machine crash after the rename may leave an empty file.
  if (flush == Flush::kToDisk && ::fsync(fd.get()) != 0) return errno;
  if (::close(fd.release()) != 0) return errno;  // NFS reports a full disk only here
  return 0;
}

}  // namespace

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Error errno_error(std::string_view what, std::string_view path, int number) {
  std::string message(what);
  message.append(" ").append(path).append(": ").append(std::generic_category().message(number));
  return {code_of_errno(number), std::move(message)};
}

Result<std::string> read_file(const std::string& path, size_t max_bytes) {
  // Non-blocking: opening a fifo would wait for a writer; /proc's files are regular ones.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat file {};
  if (!fd || ::fstat(fd.get(), &file) != 0) return errno_error("cannot read", path, errno);
  if (S_ISDIR(file.st_mode)) return errno_error("cannot read", path, EISDIR);
  if (!S_ISREG(file.st_mode)) return Error{Code::kMalformed, "cannot read " + path + ": not a regular file"};
  std::string contents;
  std::array<char, 16384> chunk;
  while (true) {
    // Reads up to one byte more than allowed, so that "exactly max_bytes" and "too long" differ.
    const size_t wanted = std::min(chunk.size(), max_bytes - contents.size() + 1);
    const ssize_t got = ::read(fd.get(), chunk.data(), wanted);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("cannot read", path, errno);
    if (got == 0) return contents;
    contents.append(chunk.data(), static_cast<size_t>(got));
    if (contents.size() > max_bytes) {
      return Error{Code::kMalformed, "cannot read " + path + ": larger than " + std::to_string(max_bytes) + " bytes"};
    }
  }
}

Status write_to_stdout(std::string_view text) {
  const size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written == text.size() && std::fflush(stdout) == 0) return ok_status();
  return Error{Code::kUnavailable, "cannot write to standard output"};
}

Status check_regular_or_absent(const std::string& path) {
  struct stat entry {};
  if (::lstat(path.c_str(), &entry) != 0 || S_ISREG(entry.st_mode)) return ok_status();
  if (S_ISDIR(entry.st_mode)) return errno_error("cannot write", path, EISDIR);
  const char* const kind = S_ISLNK(entry.st_mode) ? "a symbolic link; name the file itself" : "not a regular file";
  return Error{Code::kMalformed, "cannot write " + path + ": " + kind};
}

Result<TemporaryFile> open_temporary_beside(const std::string& path) {
  if (path.empty() || path.ends_with('/')) {
    return Error{Code::kMalformed, "cannot write " + path + ": not the name of a file"};
  }
  GL_TRY_STATUS(check_regular_or_absent(path));
  TemporaryFile file{temporary_prefix(path) + std::string(kRandomPart), {}};
  file.fd.reset(::mkostemp(file.path.data(), O_CLOEXEC));
  if (!file.fd) return errno_error("cannot write", path, errno);
  (void)::flock(file.fd.get(), LOCK_EX | LOCK_NB);
  return file;
}

Status rename_temporary(const std::string& temporary, const std::string& path) {
  Status done = check_regular_or_absent(path);
  if (done.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) done = errno_error("cannot write", path, errno);
  if (!done.ok()) ::unlink(temporary.c_str());
  return done;
}

Status write_file_atomically(const std::string& path, std::string_view contents, mode_t mode, Flush flush) {
  GL_TRY(file, open_temporary_beside(path));
  if (const int failed = fill_and_close(std::move(file.fd), contents, mode, flush)) {
    ::unlink(file.path.c_str());
    return errno_error("cannot write", path, failed);
  }
  return rename_temporary(file.path, path);
}

void remove_left_temporaries(const std::string& path) {
  const std::filesystem::path prefix = temporary_prefix(path);
  const std::string name = prefix.filename();
  std::error_code failed;
  const std::filesystem::path folder = prefix.has_parent_path() ? prefix.parent_path() : ".";
  for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string found = entry->path().filename();
    if (!found.starts_with(name) || found.size() != name.size() + kRandomPart.size()) continue;
    const UniqueFd fd(::open(entry->path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat file {};
    if (!fd || ::fstat(fd.get(), &file) != 0 || !S_ISREG(file.st_mode)) continue;
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(entry->path().c_str());
  }
}

}  // namespace gpuledger
