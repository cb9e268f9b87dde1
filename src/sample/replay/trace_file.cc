// SPDX-License-Identifier: Apache-2.0
#include "sample/replay/trace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/file.h"

namespace gpuledger::replay {

Result<TraceFile> TraceFile::create(const std::string& path) {
  const size_t name_at = path.rfind('/') + 1;  // npos + 1 is 0
  struct stat found {};
  if (name_at == path.size() || (::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode))) {
    return errno_error("cannot write", path, EISDIR);
  }
  std::string temporary = path.substr(0, name_at) + "." + path.substr(name_at) + ".XXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return errno_error("cannot write", path, errno);
  (void)::fchmod(fd.get(), 0644);
  gzFile file = ::gzdopen(fd.get(), path.ends_with(".gz") ? "wb" : "wbT");
  if (file == nullptr) {
    ::unlink(temporary.c_str());
    return errno_error("cannot write", path, ENOMEM);
  }
  (void)fd.release();  // file owns it
  return TraceFile(path, std::move(temporary), file);
}

TraceFile::TraceFile(std::string path, std::string temporary, gzFile_s* file)
    : path_(std::move(path)), temporary_(std::move(temporary)), file_(file) {}

TraceFile::TraceFile(TraceFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      file_(std::exchange(other.file_, nullptr)) {}

TraceFile::~TraceFile() {
  if (file_ == nullptr) return;
  ::gzclose(file_);
  ::unlink(temporary_.c_str());
}

Status TraceFile::append(std::string_view lines) {
  errno = 0;
  if (lines.empty() || ::gzwrite(file_, lines.data(), static_cast<unsigned>(lines.size())) > 0) return ok_status();
  return errno_error("cannot write", path_, errno != 0 ? errno : EIO);
}

Status TraceFile::commit() {
  errno = 0;
  int failed = ::gzclose(std::exchange(file_, nullptr)) == Z_OK ? 0 : (errno != 0 ? errno : EIO);
  if (failed == 0 && ::rename(temporary_.c_str(), path_.c_str()) != 0) failed = errno;
  if (failed == 0) return ok_status();
  ::unlink(temporary_.c_str());
  return errno_error("cannot write", path_, failed);
}

}  // namespace gpuledger::replay
