// SPDX-License-Identifier: Apache-2.0
#include "app/bill/window.h"

#include <charconv>
#include <optional>

#include "app/config/config_bill_values.h"
#include "base/quote.h"

namespace gpuledger::app {
namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

constexpr size_t kLongestText = 100;
constexpr seconds kLongest = days(3660);
constexpr sys_seconds kFirst = sys_days(std::chrono::year(2000) / 1 / 1);
constexpr sys_seconds kLast = sys_days(std::chrono::year(2200) / 1 / 1);

Error wrong(std::string_view text, std::string_view why) {
  return {Code::kMalformed, "window: " + in_quotes(text.substr(0, kLongestText)) + " " + std::string(why)};
}

// Digits only, so that no sign and no blank is taken.
std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<BillSpan> by_name(std::string_view text, sys_seconds now) {
  const sys_days today = floor<days>(now);
  const sys_days sunday = today - (std::chrono::weekday(today) - std::chrono::Sunday);
  const std::chrono::year_month_day date(today);
  const auto this_month = date.year() / date.month();
  const sys_days month = this_month / 1;
  if (text == "today") return BillSpan{today, today + days(1)};
  if (text == "yesterday") return BillSpan{today - days(1), today};
  if (text == "week") return BillSpan{sunday, sunday + days(7)};
  if (text == "lastweek") return BillSpan{sunday - days(7), sunday};
  if (text == "month") return BillSpan{month, sys_days((this_month + std::chrono::months(1)) / 1)};
  if (text == "lastmonth") return BillSpan{sys_days((this_month - std::chrono::months(1)) / 1), month};
  return std::nullopt;
}

std::optional<BillSpan> by_length(std::string_view text, sys_seconds now) {
  if (text.size() < 2) return std::nullopt;
  const auto count = number(text.substr(0, text.size() - 1));
  if (!count || *count < 1 || *count > kLongest / minutes(1)) return std::nullopt;
  switch (text.back()) {
    case 'm': return BillSpan{newest_end(now) - minutes(*count), newest_end(now)};
    case 'h': return BillSpan{floor<hours>(now) + hours(1 - *count), floor<hours>(now) + hours(1)};
    case 'd': return BillSpan{floor<days>(now) + days(1 - *count), floor<days>(now) + days(1)};
    case 'w': return BillSpan{floor<days>(now) + days(1 - 7 * *count), floor<days>(now) + days(1)};
    default: return std::nullopt;
  }
}

std::optional<sys_seconds> time_of(std::string_view text) {
  constexpr size_t kMostDigits = 11;
  if (const auto unix_time = number(text); unix_time && text.size() <= kMostDigits)
    return sys_seconds(seconds(*unix_time));
  const auto time = parse_time(text);
  return time.ok() ? std::optional(*time) : std::nullopt;
}

}  // namespace

sys_seconds newest_end(sys_seconds now) {
  return floor<minutes>(now - kOnTheWay);
}

Result<BillSpan> parse_window(std::string_view text, sys_seconds now) {
  auto span = by_name(text, now);
  if (!span) span = by_length(text, now);
  if (const size_t comma = text.find(','); !span && comma != std::string_view::npos) {
    const auto begin = time_of(text.substr(0, comma)), end = time_of(text.substr(comma + 1));
    if (begin && end) span = BillSpan{*begin, *end};
  }
  if (!span)
    return wrong(text,
                 "is not a window (write today, yesterday, week, lastweek, month, lastmonth, 30m, 12h, 7d, 2w, or "
                 "2026-10-01T00:00:00Z,2026-11-01T00:00:00Z)");
  if (span->end <= span->begin) return wrong(text, "does not end after it begins");
  if (span->begin < kFirst || span->end > kLast) return wrong(text, "is not between the years 2000 and 2200");
  if (span->end - span->begin > kLongest) return wrong(text, "is longer than ten years");
  return *span;
}

}  // namespace gpuledger::app
