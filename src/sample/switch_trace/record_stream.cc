// SPDX-License-Identifier: Apache-2.0
#include "sample/switch_trace/record_stream.h"

#include <string>

namespace gpuledger::switch_trace {
namespace {

constexpr uint64_t kSequenceLength = 65536;

enum class Meaning { kStart, kEnd, kReset, kNothing, kUnknown };

Meaning meaning_of(uint8_t tag) {
  switch (tag) {
    case kTagStart:
    case kTagContextStart: return Meaning::kStart;
    case kTagEnd:
    case kTagSaveEnd: return Meaning::kEnd;
    case kTagEngineReset: return Meaning::kReset;
    case 0:
    case kTagSwitchRequested:
    case kTagAckFirst:
    case kTagRestoreStart:
    case kTagInvalidTime: return Meaning::kNothing;
    default: return tag >= kTagAckWait && tag <= kTagAckLast ? Meaning::kNothing : Meaning::kUnknown;
  }
}

}  // namespace

void RecordStream::restart() {
  sequence_.reset();
  last_at_.reset();
  drops_ = 0;
}

// The sequence also counts dropped records, but only up to 65535; the kernel's count of drops shows how often it
// wrapped. Other losses, in the GPU's own buffer, show only here.
void RecordStream::watch_sequence(uint16_t sequence, ResidencyBuilder& builder) {
  if (sequence_) {
    const auto missing = static_cast<uint64_t>(static_cast<uint16_t>(sequence - *sequence_ - 1));
    const uint64_t rounds = drops_ > missing ? (drops_ - missing + kSequenceLength - 1) / kSequenceLength : 0;
    const uint64_t lost = missing + rounds * kSequenceLength;
    if (lost > 0) builder.lose_track();
    lost_ += lost;
  }
  drops_ = 0;
  sequence_ = sequence;
}

Nanoseconds RecordStream::time_of(const SwitchRecord& record, const GpuClock& clock) {
  // A record without a time gets the time of the one before.
  if (record.timestamp == 0) return last_at_.value_or(clock.last_compared());
  const Nanoseconds at = clock.to_steady(Nanoseconds(static_cast<int64_t>(record.timestamp)));
  if (!last_at_ || at >= *last_at_) return at;
  ++backwards_;
  return *last_at_;
}

Status RecordStream::take(const SwitchRecord& record, const GpuClock& clock, ResidencyBuilder& builder) {
  if (record.type != kRecordType) {
    return Error{Code::kMalformed, "the trace has a record of an unknown type " + std::to_string(record.type)};
  }
  const Meaning meaning = meaning_of(record.tag);
  if (meaning == Meaning::kUnknown) {
    return Error{Code::kMalformed, "the trace has a record with an unknown tag " + std::to_string(record.tag)};
  }
  ++records_;
  watch_sequence(record.sequence, builder);
  if (meaning == Meaning::kNothing) return ok_status();
  if (meaning == Meaning::kReset) {
    builder.lose_track();
    return ok_status();
  }
  if (record.pid == kHiddenPid) {
    return Error{Code::kPermission,
                 "the driver hides the processes of other users: the trace needs the capability SYS_ADMIN"};
  }
  if (clock.known() && !clock.has_happened(record.timestamp))
    return Error{Code::kMalformed, "the trace has a record from the future"};
  const Nanoseconds at = time_of(record, clock);
  last_at_ = at;
  const auto engine = static_cast<uint16_t>(record.gpu_instance << 8 | record.compute_instance);
  builder.take({meaning == Meaning::kStart, at, record.pid, record.context, engine});
  return ok_status();
}

}  // namespace gpuledger::switch_trace
