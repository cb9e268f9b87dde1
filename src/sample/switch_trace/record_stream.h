// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "sample/switch_trace/gpu_clock.h"
#include "sample/switch_trace/residency_builder.h"
#include "sample/switch_trace/rm_abi.h"

namespace gpuledger::switch_trace {

// Reads the records of one trace in order: finds losses, decodes each and converts its time.
class RecordStream {
 public:
  // A trace began; its first record starts the sequence.
  void restart();
  // Error: an impossible record, or one with a hidden process. The rest of this trace must not be trusted.
  Status take(const SwitchRecord& record, const GpuClock& clock, ResidencyBuilder& builder);
  // The ring was full; the kernel dropped this many records after the last one.
  void note_drops(uint64_t count) { drops_ = count; }

  uint64_t records() const { return records_; }
  uint64_t lost() const { return lost_; }
  uint64_t backwards() const { return backwards_; }
  // When the last record was written; empty: none yet.
  std::optional<Nanoseconds> last_at() const { return last_at_; }

 private:
  void watch_sequence(uint16_t sequence, ResidencyBuilder& builder);
  Nanoseconds time_of(const SwitchRecord& record, const GpuClock& clock);

  std::optional<uint16_t> sequence_;
  std::optional<Nanoseconds> last_at_;
  uint64_t drops_ = 0;
  uint64_t records_ = 0;
  uint64_t lost_ = 0;
  uint64_t backwards_ = 0;
};

}  // namespace gpuledger::switch_trace
