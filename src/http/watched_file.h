// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

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

// The largest web config, certificate or key.
constexpr size_t kLargestWatchedFile = 1 << 20;

}  // namespace gpuledger::http
