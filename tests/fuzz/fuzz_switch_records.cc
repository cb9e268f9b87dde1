// SPDX-License-Identifier: Apache-2.0
// What must hold of the time on the GPU whatever records the trace of context switches has: never more than there was,
// bins in order, nothing from outside the traced time.

#include <cstdint>
#include <cstring>
#include <vector>

#include "invariant.h"
#include "sample/switch_trace/gpu_clock.h"
#include "sample/switch_trace/record_stream.h"
#include "sample/switch_trace/residency_builder.h"

using namespace gpuledger;
using namespace gpuledger::switch_trace;
using gpuledger::fuzz::require;

namespace {

constexpr Nanoseconds kBegin = std::chrono::seconds(1000);

void check_bins(const std::vector<ResidencyBin>& bins, Nanoseconds& last) {
  for (const ResidencyBin& bin : bins) {
    require(bin.width == ResidencyBuilder::kBin, "bins are of one width");
    require(bin.end > last && bin.end - bin.width >= kBegin, "bins come in order and after the beginning");
    last = bin.end;
    for (const Residency& one : bin.residents) {
      require(one.resident.count() > 0, "who is listed was there");
      require(!one.contended || (one.contended->count() >= 0 && *one.contended <= one.resident), "a part of the whole");
    }
  }
}

// Six bytes a record, so that most inputs are traces of the right form.
SwitchRecord record_of(const uint8_t* bytes, uint16_t sequence, uint64_t& gpu_time) {
  constexpr uint8_t kTags[] = {kTagStart, kTagEnd, kTagContextStart, kTagSaveEnd, kTagEngineReset, kTagInvalidTime,
                               0,         9};
  SwitchRecord record{};
  record.type = bytes[0] == 255 ? bytes[1] : kRecordType;
  record.tag = kTags[bytes[0] % 8];
  record.sequence = static_cast<uint16_t>(sequence + (bytes[1] > 250 ? bytes[1] : 0));
  record.context = bytes[2] % 4;
  record.pid = bytes[3] % 4 == 3 ? kKernelPid : bytes[3] % 4;
  record.gpu_instance = record.compute_instance = bytes[2] > 127 ? bytes[2] % 3 : 255;
  gpu_time += uint64_t{bytes[4]} * 40'000 + bytes[5];
  record.timestamp = bytes[5] == 255 ? 0 : bytes[5] == 254 ? gpu_time - 5'000'000 : gpu_time;
  if (bytes[5] == 253) std::memcpy(&record.timestamp, bytes, 6);
  return record;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  GpuClock clock;
  clock.compare({.gpu = kBegin, .steady = kBegin});
  ResidencyBuilder builder;
  RecordStream stream;
  stream.restart();
  builder.begin(kBegin);
  uint64_t gpu_time = static_cast<uint64_t>(kBegin.count());
  Nanoseconds last{0};
  uint16_t sequence = 0;
  for (size_t at = 0; at + 6 <= size; at += 6) {
    const SwitchRecord record = record_of(bytes + at, ++sequence, gpu_time);
    sequence = record.sequence;
    if (!stream.take(record, clock, builder)) break;
    if (bytes[at] % 32 == 31) builder.complete_until(stream.last_at().value_or(kBegin));
    check_bins(builder.take_bins(), last);
  }
  const Nanoseconds end = std::max(stream.last_at().value_or(kBegin), kBegin);
  builder.complete_until(end);
  builder.end(end);
  check_bins(builder.take_bins(), last);
  require(last <= end, "nothing from after the end");
  const SwitchCounts counts = builder.take_counts();
  require(counts.switching.count() >= 0 && counts.unknown.count() >= 0, "times are not negative");
  uint64_t by_process = 0;
  for (const auto& [pid, count] : counts.switches_by_process) by_process += count;
  require(by_process <= counts.switches, "every switch has one process at most");
  return 0;
}
