// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "sample/switch_trace/rm_abi.h"

namespace gpuledger::switch_trace {

// The ring that the kernel writes and we read, in mapped memory. The kernel stops before records that were not given
// back, and counts what it drops.
class SwitchRing {
 public:
  SwitchRing(const RingHeader* header, const SwitchRecord* records, uint32_t size)
      : header_(header), records_(records), size_(size) {}

  uint32_t size() const { return size_; }
  // Appends the new records. Error: the header is invalid, so nothing in it can be trusted.
  Status read(std::vector<SwitchRecord>& out);
  // Skips the unread records.
  Status skip_all();

  uint32_t next() const { return next_; }
  uint32_t not_given_back() const { return (next_ + size_ - given_back_) % size_; }
  void note_given_back() { given_back_ = next_; }
  // Since records were last given back.
  uint64_t drops() const;

 private:
  Result<uint32_t> put() const;

  const RingHeader* header_;
  const SwitchRecord* records_;
  uint32_t size_;
  uint32_t next_ = 0;
  uint32_t given_back_ = 0;
};

}  // namespace gpuledger::switch_trace
