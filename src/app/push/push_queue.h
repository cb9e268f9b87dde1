// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "base/file_lock.h"
#include "base/result.h"

namespace gpuledger::app {

// One request to the receiver: all samples of one snapshot.
struct PushBlock {
  int64_t at_ms = 0;  // since 1970
  uint64_t samples = 0;
  std::string body;  // compressed
};

// The blocks that wait for the receiver, oldest first, each a file of its own in a folder, or all in memory. Used under
// a lock of its owner; its calls may wait for the disk.
class PushQueue {
 public:
  struct Limits {
    uint64_t on_disk = 256 << 20;
    uint64_t in_memory = 16 << 20;
  };
  struct Front {
    uint64_t number = 0;
    PushBlock block;
  };

  // folder: made if only it is missing; empty: in memory. Error: it cannot be used, or another program uses it. Blocks
  // that are there come first. Files with other names are left alone.
  static Result<std::unique_ptr<PushQueue>> open(const std::string& folder, Limits limits);

  // Above the limit the oldest blocks go. Error: the disk did not take it; it waits in memory.
  Status append(PushBlock block);
  // The oldest one; it stays. A damaged file is removed, and so is one that cannot be read again and again. Error: it
  // cannot be read now (no free descriptor, say).
  Result<std::optional<Front>> front();
  // False: it is no longer there, because newer ones needed its place.
  bool remove(uint64_t number);

  size_t blocks() const { return waiting_.size(); }
  uint64_t samples() const { return samples_; }
  // Of these, what goes with the program.
  uint64_t samples_in_memory() const { return memory_samples_; }
  uint64_t bytes() const { return disk_bytes_ + memory_bytes_; }
  std::optional<int64_t> oldest_ms() const;
  // Samples since the start.
  uint64_t over_limit() const { return over_limit_; }
  uint64_t unreadable() const { return unreadable_; }

 private:
  struct Waiting {
    uint64_t number = 0;
    int64_t at_ms = 0;
    uint64_t samples = 0;
    uint64_t bytes = 0;
    bool on_disk = false;
    std::string body;      // in memory only
    int failed_reads = 0;  // for reasons that may pass
  };

  PushQueue(std::string folder, Limits limits) : folder_(std::move(folder)), limits_(limits) {}
  Status read_folder();
  static std::string name_of(const Waiting& waiting);
  static std::optional<Waiting> parse_name(std::string_view name);
  std::string path_of(const Waiting& waiting) const { return folder_ + "/" + name_of(waiting); }
  Result<std::string> read_body(const Waiting& waiting) const;
  void add(Waiting waiting);
  void drop(const std::deque<Waiting>::iterator& which);
  void keep_limits();

  const std::string folder_;
  const Limits limits_;
  std::unique_ptr<FileLock> lock_;
  std::deque<Waiting> waiting_;
  uint64_t next_ = 1;
  uint64_t samples_ = 0;
  uint64_t memory_samples_ = 0;
  uint64_t disk_bytes_ = 0;
  uint64_t memory_bytes_ = 0;
  uint64_t over_limit_ = 0;
  uint64_t unreadable_ = 0;
};

}  // namespace gpuledger::app
