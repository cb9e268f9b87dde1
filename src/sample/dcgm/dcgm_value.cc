// SPDX-License-Identifier: Apache-2.0
#include "sample/dcgm/dcgm_value.h"

#include <cmath>

#include "base/quote.h"

namespace gpuledger::dcgm {

bool is_number(double value) {
  return std::isfinite(value) && value < kBlankDouble;
}

bool is_blank(const std::string& text) {
  return text.starts_with("<<<") && text.find(">>>") != std::string::npos;
}

std::optional<int64_t> Reading::integer() const {
  if (status != kOk || (type != 'i' && type != 't') || is_blank(content->i64)) return std::nullopt;
  return content->i64;
}

std::optional<uint64_t> Reading::count() const {
  const auto value = integer();
  if (!value || *value < 0) return std::nullopt;
  return static_cast<uint64_t>(*value);
}

std::optional<double> Reading::number() const {
  if (status != kOk) return std::nullopt;
  if (type == 'i') {
    const auto whole = integer();
    return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
  }
  if (type != 'd' || !is_number(content->dbl)) return std::nullopt;
  return content->dbl;
}

std::optional<std::string> Reading::text() const {
  if (status != kOk || type != 's') return std::nullopt;
  const size_t length = strnlen(content->text, sizeof content->text);
  std::string copy = clean_text({content->text, length}, sizeof content->text);
  if (copy.empty() || is_blank(copy)) return std::nullopt;
  return copy;
}

namespace {

// 0 if it is not between 1970 and 2116: differences of other times may overflow.
int64_t possible_time(int64_t us) {
  constexpr int64_t kLatest = INT64_MAX / 2000;
  return us > 0 && us < kLatest ? us : 0;
}

template <typename FieldValue>
Reading read(const FieldValue& value) {
  return {value.fieldId, static_cast<char>(value.fieldType), static_cast<Return>(value.status), possible_time(value.ts),
          &value.value};
}

}  // namespace

Reading reading_of(const FieldValue_v1& value) {
  return read(value);
}

Reading reading_of(const FieldValue_v2& value) {
  return read(value);
}

}  // namespace gpuledger::dcgm
