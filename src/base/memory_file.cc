// SPDX-License-Identifier: Apache-2.0
#include "base/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace gpuledger {
namespace {

// Linux 6.3: the file can be mapped as a library but not run as a program. With vm.memfd_noexec=2 the kernel allows no
// other kind of memory file; older kernels do not know the flag. Not in Debian 12's header.
constexpr unsigned kNeverAProgram = 8;

}  // namespace

Result<UniqueFd> make_memory_file(const char* name, std::string_view contents) {
  UniqueFd file(::memfd_create(name, MFD_CLOEXEC | kNeverAProgram));
  if (!file && errno == EINVAL) file.reset(::memfd_create(name, MFD_CLOEXEC));
  if (!file) return errno_error("cannot make a file in memory for", name, errno);
  while (!contents.empty()) {
    const ssize_t written = ::write(file.get(), contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return errno_error("cannot write the file in memory for", name, errno);
    contents.remove_prefix(static_cast<size_t>(written));
  }
  return file;
}

std::string memory_file_path(const UniqueFd& file) {
  return "/proc/self/fd/" + std::to_string(file.get());
}

}  // namespace gpuledger
