// SPDX-License-Identifier: Apache-2.0
#include "sample/replay/trace_file.h"

#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <utility>

#include "base/file.h"

namespace gpuledger::replay {

Result<TraceFile> TraceFile::create(const std::string& path) {
  remove_left_temporaries(path);
  GL_TRY(temporary, open_temporary_beside(path));
  gzFile file = ::gzdopen(temporary.fd.get(), path.ends_with(".gz") ? "wb" : "wbT");
  if (file == nullptr) {
    ::unlink(temporary.path.c_str());
    return errno_error("cannot write", path, ENOMEM);
  }
  (void)temporary.fd.release();  // file owns it
  return TraceFile(path, std::move(temporary.path), file);
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
  if (::gzclose(std::exchange(file_, nullptr)) == Z_OK) return rename_temporary(temporary_, path_);
  const int failed = errno != 0 ? errno : EIO;
  ::unlink(temporary_.c_str());
  return errno_error("cannot write", path_, failed);
}

}  // namespace gpuledger::replay
