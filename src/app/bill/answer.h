// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gpuledger::app {

// One series of an answer of Prometheus' query API.
struct BillSeries {
  struct Sample {
    int64_t at_ms = 0;  // since 1970
    double value = 0;
  };
  std::vector<std::pair<std::string, std::string>> labels;
  std::vector<Sample> samples;  // one, except for a range of raw samples

  // Empty: it has no such label.
  std::string_view label(std::string_view name) const;
  // A label of the exporter. Prometheus renames it to exported_NAME where the target has one of that name and
  // honor_labels is off.
  std::string_view own_label(std::string_view name) const;
  std::string text() const;  // for messages: name{labels}
};

// The series of a vector, a matrix or a scalar. Whatever is not complete is an error: a status other than success, a
// partial answer, another form. Reads as it goes: an answer of a large fleet has tens of megabytes.
Result<std::vector<BillSeries>> parse_answer(std::string_view body);

// The server's own words in the body of a refusal; empty: it has none.
std::string error_in_answer(std::string_view body);

}  // namespace gpuledger::app
