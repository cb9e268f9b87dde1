// SPDX-License-Identifier: Apache-2.0
#include "base/duration.h"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/quote.h"
#include "base/text.h"

namespace gpuledger {
namespace {

struct Unit {
  std::string_view name;
  int64_t nanoseconds;
};
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kDay = 24 * 3600 * kSecond;
// Longer names first where one begins with another ("ms" before "m"). Both micro signs, as in Go.
constexpr std::array<Unit, 11> kUnits = {{{"ns", 1},
                                          {"us", 1000},
                                          {"\u00b5s", 1000},
                                          {"\u03bcs", 1000},
                                          {"ms", 1'000'000},
                                          {"s", kSecond},
                                          {"m", 60 * kSecond},
                                          {"h", 3600 * kSecond},
                                          {"d", kDay},
                                          {"w", 7 * kDay},
                                          {"y", 365 * kDay}}};
constexpr __int128 kLongest = std::numeric_limits<int64_t>::max();

struct Number {
  __int128 whole = 0;  // stops growing beyond kLongest
  __int128 fraction = 0;
  __int128 scale = 1;  // fraction / scale
};

// Empty without a digit. Fraction digits beyond the 15th are dropped: no unit can show them.
std::optional<Number> take_number(std::string_view& text) {
  Number number;
  bool any = false;
  for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1), any = true) {
    if (number.whole <= kLongest) number.whole = number.whole * 10 + (text.front() - '0');
  }
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1), any = true) {
      if (number.scale >= 1'000'000'000'000'000) continue;
      number.fraction = number.fraction * 10 + (text.front() - '0');
      number.scale *= 10;
    }
  }
  if (!any) return std::nullopt;
  return number;
}

std::optional<int64_t> take_unit(std::string_view& text) {
  for (const Unit& unit : kUnits) {
    if (!text.starts_with(unit.name)) continue;
    text.remove_prefix(unit.name.size());
    return unit.nanoseconds;
  }
  return std::nullopt;
}

}  // namespace

Result<Nanoseconds> parse_duration(std::string_view text) {
  constexpr std::string_view kNotOne = "is not a duration (write 500ms, 10s, 1m30s)";
  std::string_view rest = text;
  if (rest.starts_with('-')) return malformed(text, "is negative (write 500ms, 10s, 1m30s)");
  if (rest.starts_with('+')) rest.remove_prefix(1);
  if (rest == "0") return Nanoseconds(0);
  if (rest.empty()) return malformed(text, kNotOne);
  __int128 total = 0;
  while (!rest.empty()) {
    const std::optional<Number> number = take_number(rest);
    if (!number) return malformed(text, kNotOne);
    const std::optional<int64_t> unit = take_unit(rest);
    if (!unit) return malformed(text, kNotOne);
    if (number->whole > kLongest) return malformed(text, "is too long a duration");
    total += number->whole * *unit + number->fraction * *unit / number->scale;
    if (total > kLongest) return malformed(text, "is too long a duration");
  }
  return Nanoseconds(static_cast<int64_t>(total));
}

std::string write_duration(Nanoseconds duration) {
  constexpr std::array<Unit, 7> kParts = {{{"d", kDay},
                                           {"h", 3600 * kSecond},
                                           {"m", 60 * kSecond},
                                           {"s", kSecond},
                                           {"ms", 1'000'000},
                                           {"us", 1000},
                                           {"ns", 1}}};
  int64_t rest = duration.count();
  std::string out;
  for (const Unit& part : kParts) {
    if (rest < part.nanoseconds) continue;
    out += std::to_string(rest / part.nanoseconds);
    out += part.name;
    rest %= part.nanoseconds;
  }
  return out.empty() ? "0s" : out;
}

}  // namespace gpuledger
