// SPDX-License-Identifier: Apache-2.0
// What must hold of a recorded trace whatever is in it: refused with its line, or sorted and with a counter.

#include <algorithm>
#include <cstdint>
#include <string>

#include "invariant.h"
#include "sample/replay/trace.h"

using gpuledger::fuzz::require;
using gpuledger::replay::parse_trace;

namespace {

template <typename Entries>
void check_sorted(const Entries& entries) {
  const auto earlier = [](const auto& a, const auto& b) { return a.t < b.t; };
  require(std::is_sorted(entries.begin(), entries.end(), earlier), "sorted by time");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const auto trace = parse_trace({reinterpret_cast<const char*>(bytes), size}, "trace");
  if (!trace) {
    require(trace.error().message.starts_with("trace"), "an error says where");
    require(trace.error().message.find('\n') == std::string::npos, "an error is one line");
    return 0;
  }
  require(!trace->counters.empty(), "there is a counter");
  require(trace->length.count() >= 0, "a length");
  check_sorted(trace->counters);
  check_sorted(trace->tickets);
  check_sorted(trace->listings);
  check_sorted(trace->processes);
  for (const auto& process : trace->processes) {
    require(process.name.str().size() <= gpuledger::replay::kMostNameBytes, "a bounded name");
    for (const auto& field : gpuledger::kOwnerFields) {
      require((process.owner.*field.value).str().size() <= gpuledger::replay::kMostNameBytes, "a bounded owner");
    }
  }
  check_sorted(trace->states);
  check_sorted(trace->activities);
  check_sorted(trace->power);
  check_sorted(trace->residency);
  for (const auto& resident : trace->residency) {
    require(resident.bin.width.count() > 0, "a bin has a width");
    for (const auto& one : resident.bin.residents)
      require(one.resident.count() >= 0 && one.resident <= resident.bin.width, "nobody longer than the bin");
  }
  return 0;
}
