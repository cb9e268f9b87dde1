// SPDX-License-Identifier: Apache-2.0
// What must hold of a bill's readings whatever a Prometheus server answers: every series has a value, every reading is
// of a node with a name, and no counter is below zero.

#include <cstdint>
#include <string_view>

#include "app/bill/answer.h"
#include "app/bill/reading.h"
#include "invariant.h"

using namespace gpuledger::app;
using gpuledger::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  (void)error_in_answer(text);
  const auto answer = parse_answer(text);
  if (!answer.ok()) return 0;
  for (const BillSeries& series : *answer) require(!series.samples.empty(), "a series has a value");
  BillFacts facts;
  const auto readings = read_nodes(*answer, facts);
  if (!readings.ok()) return 0;
  for (const NodeReading& reading : *readings) {
    require(!reading.node.name.empty(), "a node has a name");
    for (const auto& [uuid, gpu] : reading.gpus) {
      require(gpu.energy >= 0, "a meter is not below zero");
      (void)gpu.imbalance();
      (void)gpu.rounding();
    }
  }
  return 0;
}
