// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace gpuledger::http {

// Identifies the state of a file. Follows links, so that a Kubernetes secret, which is replaced by changing a link,
// shows as changed.
struct FileStamp {
  std::string path;
  int64_t modified_ns = 0;
  uint64_t size = 0;
  uint64_t inode = 0;
  bool operator==(const FileStamp&) const = default;
};

// All zero if the file cannot be read.
FileStamp read_file_stamp(const std::string& path);

// The largest web config, certificate or key.
constexpr size_t kLargestWatchedFile = 1 << 20;

}  // namespace gpuledger::http
