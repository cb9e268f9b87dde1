// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <optional>
#include <string>

#include "sample/dcgm/dcgm_abi.h"

namespace gpuledger::dcgm {

// The values for "no number", by reason; all values from here on are blank, so they are compared with >=.
inline constexpr int64_t kBlank64 = 0x7ffffffffffffff0;
inline constexpr double kBlankDouble = 140737488355328.0;

inline bool is_blank(int64_t value) {
  return value >= kBlank64;
}
// Also false for nonsense: an engine may return uninitialized memory.
bool is_number(double value);
bool is_blank(const std::string& text);

// One value of one field, from any call.
struct Reading {
  FieldId field = 0;
  char type = 0;
  Return status = kNoData;
  int64_t at_us = 0;  // 0: not a possible time
  const Content* content = nullptr;

  // Checks the status first: libraries of version 3 give 0 with "no data". Then the type, then the blank.
  std::optional<int64_t> integer() const;
  std::optional<uint64_t> count() const;  // an integer that is not negative
  std::optional<double> number() const;
  std::optional<std::string> text() const;

  // Empty unless it has this structure in this version.
  template <typename T>
  std::optional<T> blob(unsigned version) const {
    if (status != kOk || type != 'b') return std::nullopt;
    T copy;
    static_assert(sizeof copy <= kBlobSize);
    std::memcpy(&copy, content->blob, sizeof copy);
    return copy.version == version ? std::optional(copy) : std::nullopt;
  }
};

Reading reading_of(const FieldValue_v1& value);
Reading reading_of(const FieldValue_v2& value);

}  // namespace gpuledger::dcgm
