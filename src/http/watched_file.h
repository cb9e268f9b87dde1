#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace gpuledger::http {

// What tells one state of a file from the next. Follows links, so that a Kubernetes secret, which is
// replaced by turning a link, shows as changed.
struct FileStamp {
  std::string path;
  int64_t modified_ns = 0;
  uint64_t size = 0;
  uint64_t inode = 0;
  bool operator==(const FileStamp&) const = default;
};

// All zero where the file cannot be looked at.
FileStamp read_file_stamp(const std::string& path);

// The whole file, which may not be larger than 1 MiB.
Result<std::string> read_whole_file(const std::string& path);

}  // namespace gpuledger::http
