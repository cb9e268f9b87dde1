// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "expose/numbers.h"
#include "model/sample.h"

namespace gpuledger::expose {

// The samples of a histogram in the order of the exposition: take(suffix of the name, number, label of the bound).
template <typename Take>
void for_each_sample(const DurationHistogram& histogram, Take take) {
  uint64_t cumulative = 0;
  std::string bound;
  for (size_t i = 0; i <= DurationHistogram::kBuckets; ++i) {
    cumulative += histogram.counts[i];
    bound = "le=\"";
    if (i < DurationHistogram::kBuckets) {
      append_bound(bound, DurationHistogram::kBounds[i]);
    } else {
      bound += "+Inf";
    }
    bound += '"';
    take(std::string_view("_bucket"), cumulative, std::string_view(bound));
  }
  take(std::string_view("_sum"), histogram.sum_seconds, std::string_view());
  take(std::string_view("_count"), cumulative, std::string_view());
}

}  // namespace gpuledger::expose
