// SPDX-License-Identifier: Apache-2.0
#include "app/bill/amounts.h"

#include <fmt/core.h>

#include <cmath>
#include <string_view>

namespace gpuledger::app {
namespace {

std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

}  // namespace

double to_kwh(int64_t millijoules) {
  return static_cast<double>(millijoules) / static_cast<double>(kMillijoulesPerKwh);
}

double hours_of(std::chrono::seconds time) {
  return std::chrono::duration<double, std::ratio<3600>>(time).count();
}

std::string exact_kwh(int64_t millijoules) {
  // By long division: a double has too few digits for a year of a large site.
  const bool negative = millijoules < 0;
  const auto all = negative ? -static_cast<uint64_t>(millijoules) : static_cast<uint64_t>(millijoules);
  std::string text = fmt::format("{}{}.", negative ? "-" : "", all / kMillijoulesPerKwh);
  uint64_t rest = all % kMillijoulesPerKwh;
  constexpr int kDecimals = 16;
  for (int i = 0; i < kDecimals && rest != 0; ++i) {
    rest *= 10;
    text += static_cast<char>('0' + rest / kMillijoulesPerKwh);
    rest %= kMillijoulesPerKwh;
  }
  return without_trailing_zeros(std::move(text));
}

std::string plain_decimal(double value) {
  return without_trailing_zeros(fmt::format("{:.12f}", value));
}

std::string grouped_decimal(double value, int decimals) {
  constexpr std::string_view kNarrowSpace = "\u202f";
  const std::string digits = fmt::format("{:.{}f}", std::abs(value), decimals);
  const size_t whole = std::min(digits.find('.'), digits.size());
  std::string text;
  // A rounded zero has no sign.
  if (value < 0 && digits.find_first_not_of("0.") != std::string::npos) text = "\u2212";
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && i < whole && (whole - i) % 3 == 0) text += kNarrowSpace;
    text += digits[i];
  }
  return text;
}

std::string utc_text(std::chrono::sys_seconds time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

std::string time_text(std::chrono::sys_seconds time) {
  std::string text = utc_text(time);
  text[text.find('T')] = ' ';
  return text;
}

}  // namespace gpuledger::app
