// SPDX-License-Identifier: Apache-2.0
#include "sample/nvml/nvml_calls.h"

namespace gpuledger::nvml {

void Calls::finish(const char* symbol, Nanoseconds took, Return result) {
  durations_[symbol].observe(std::chrono::duration<double>(took).count());
  if (means_driver_gone(result) && driver_gone_.empty()) driver_gone_ = describe(symbol, result);
}

void Calls::absorb(Calls& other) {
  for (const auto& [kind, count] : other.errors_) errors_[kind] += count;
  for (const auto& [symbol, histogram] : other.durations_) {
    DurationHistogram& sum = durations_[symbol];
    for (size_t i = 0; i <= DurationHistogram::kBuckets; ++i) sum.counts[i] += histogram.counts[i];
    sum.sum_seconds += histogram.sum_seconds;
  }
  if (driver_gone_.empty()) driver_gone_ = other.driver_gone_;
  other.errors_.clear();
  // Cleared, not removed: the next cycle makes the same calls.
  for (auto& [symbol, histogram] : other.durations_) histogram = DurationHistogram{};
  other.driver_gone_.clear();
}

}  // namespace gpuledger::nvml
