// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <string>

#include "base/result.h"

namespace gpuledger {

// What a vendor's error code means. Own texts instead of the vendor's: those are missing if loading the library failed.
struct ErrorRow {
  int value;
  Code code;
  const char* text;
  const char* advice = "";
};

// Newer versions have more codes; all of them mean that there is no data.
inline const ErrorRow& error_row(std::span<const ErrorRow> rows, int value) {
  static constexpr ErrorRow kOther = {0, Code::kInternal, "unknown error"};
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const ErrorRow& r) { return r.value == value; });
  return row == rows.end() ? kOther : *row;
}

// "nvmlInit_v2: driver not loaded (NVML 9)"
inline std::string describe_error(const char* symbol, const ErrorRow& row, const char* vendor, int value) {
  return std::string(symbol) + ": " + row.text + " (" + vendor + " " + std::to_string(value) + ")";
}

}  // namespace gpuledger
