// SPDX-License-Identifier: Apache-2.0
#include "sample/switch_trace/switch_ring.h"

#include <algorithm>
#include <string>

namespace gpuledger::switch_trace {

// The kernel writes a record and then moves put, so records before put are complete.
Result<uint32_t> SwitchRing::put() const {
  const uint32_t put = __atomic_load_n(&header_->record_put, __ATOMIC_ACQUIRE);
  if (put < size_) return put;
  return Error{Code::kMalformed, "the ring's end is at " + std::to_string(put) + " of " + std::to_string(size_)};
}

Status SwitchRing::read(std::vector<SwitchRecord>& out) {
  GL_TRY(end, put());
  const uint32_t wrap = end < next_ ? size_ : end;
  out.insert(out.end(), records_ + next_, records_ + wrap);
  if (end < next_) out.insert(out.end(), records_, records_ + end);
  next_ = end;
  return ok_status();
}

Status SwitchRing::skip_all() {
  GL_TRY(end, put());
  next_ = given_back_ = end;
  return ok_status();
}

uint64_t SwitchRing::drops() const {
  return __atomic_load_n(&header_->record_drops, __ATOMIC_ACQUIRE);
}

}  // namespace gpuledger::switch_trace
