// SPDX-License-Identifier: Apache-2.0
#include "http/watched_file.h"

#include <sys/stat.h>

namespace gpuledger::http {

FileStamp read_file_stamp(const std::string& path) {
  FileStamp stamp{path, 0, 0, 0};
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return stamp;
  stamp.modified_ns = int64_t{file.st_mtim.tv_sec} * 1'000'000'000 + file.st_mtim.tv_nsec;
  stamp.size = static_cast<uint64_t>(file.st_size);
  stamp.inode = file.st_ino;
  return stamp;
}

}  // namespace gpuledger::http
