// SPDX-License-Identifier: Apache-2.0
#include "app/config/config_bill_values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "app/config/config_values.h"
#include "base/quote.h"
#include "model/owner.h"

namespace gpuledger::app {
namespace {

using std::chrono::day;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::month;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;
using std::chrono::year;
using std::chrono::year_month;
using std::chrono::year_month_day;

constexpr double kLargestAmount = 1e9;

// Takes `count` digits off the front.
std::optional<int> take_digits(std::string_view& text, size_t count) {
  if (text.size() < count || !std::all_of(text.begin(), text.begin() + static_cast<ptrdiff_t>(count),
                                          [](char c) { return c >= '0' && c <= '9'; })) {
    return std::nullopt;
  }
  int number = 0;
  std::from_chars(text.data(), text.data() + count, number);
  text.remove_prefix(count);
  return number;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == any_of.npos) return false;
  text.remove_prefix(1);
  return true;
}

// "12:30", up to 23:59.
std::optional<minutes> take_clock(std::string_view& text) {
  const auto hour = take_digits(text, 2);
  if (!hour || !take(text, ":")) return std::nullopt;
  const auto minute = take_digits(text, 2);
  if (!minute || *hour > 23 || *minute > 59) return std::nullopt;
  return hours(*hour) + minutes(*minute);
}

std::optional<sys_days> take_date(std::string_view& text) {
  const auto y = take_digits(text, 4);
  if (!y || !take(text, "-")) return std::nullopt;
  const auto m = take_digits(text, 2);
  if (!m || !take(text, "-")) return std::nullopt;
  const auto d = take_digits(text, 2);
  if (!d) return std::nullopt;
  const year_month_day date(year(*y), month(static_cast<unsigned>(*m)), day(static_cast<unsigned>(*d)));
  if (!date.ok()) return std::nullopt;
  return sys_days(date);
}

std::optional<sys_seconds> take_time(std::string_view text) {
  const auto date = take_date(text);
  if (!date) return std::nullopt;
  sys_seconds time = *date;
  if (text.empty()) return time;
  if (!take(text, "Tt ")) return std::nullopt;
  const auto clock = take_clock(text);
  if (!clock) return std::nullopt;
  time += *clock;
  if (take(text, ":")) {
    const auto second = take_digits(text, 2);
    if (!second || *second > 59) return std::nullopt;
    time += seconds(*second);
  }
  if (take(text, "Zz")) return text.empty() ? std::optional(time) : std::nullopt;
  const bool east = text.starts_with('+');
  if (!take(text, "+-")) return std::nullopt;
  const auto zone = take_clock(text);
  if (!zone || !text.empty()) return std::nullopt;
  return east ? time - *zone : time + *zone;
}

}  // namespace

Result<year_month> parse_month(std::string_view text) {
  std::string_view rest = text;
  const auto y = take_digits(rest, 4);
  if (y && take(rest, "-")) {
    const auto m = take_digits(rest, 2);
    const year_month parsed(year(*y), month(static_cast<unsigned>(m.value_or(0))));
    if (m && rest.empty() && parsed.ok()) return parsed;
  }
  return malformed(text, "is not a month (write 2026-10)");
}

Result<sys_seconds> parse_time(std::string_view text) {
  const auto time = take_time(text);
  if (!time)
    return malformed(text, "is not a time (write 2026-10-01, 2026-10-01T12:30:00Z or 2026-10-01T12:30:00+02:00)");
  return *time;
}

Result<double> parse_amount(std::string_view text) {
  double amount = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || !std::isfinite(amount) || amount < 0 || amount > kLargestAmount) {
    return malformed(text, "is not an amount (a number from 0 to 1000000000, with a point: 0.25)");
  }
  return amount;
}

Result<double> parse_pue(std::string_view text) {
  const Result<double> number = parse_amount(text);
  if (!number.ok() || *number < 1 || *number > 10) return malformed(text, "is not a PUE (1 to 10)");
  return number;
}

Result<std::pair<std::string, double>> parse_gpu_hour_price(std::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == text.npos || equals == 0) {
    return malformed(text, "is not MODEL=PRICE (write 'NVIDIA H200=2.50'; the models are in gpu_ledger_device_info)");
  }
  GL_TRY(price, parse_amount(text.substr(equals + 1)));
  return std::pair(std::string(text.substr(0, equals)), price);
}

Result<std::string> parse_currency(std::string_view text) {
  const bool letters = std::all_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  if (text.size() != 3 || !letters) return malformed(text, "is not a currency (write its code by ISO 4217: EUR, USD)");
  return std::string(text);
}

Result<std::string> parse_matchers(std::string_view text) {
  while (text.ends_with(',') || text.ends_with(' ')) text.remove_suffix(1);
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && (text[i] == '{' || text[i] == '}')) {
      return malformed(text, "is more than matchers (write what stands between the braces: cluster=\"east\")");
    }
  }
  if (quoted || (!text.empty() && text.find('"') == text.npos)) {
    return malformed(text, "is not a list of matchers (write cluster=\"east\", with the quotes)");
  }
  return std::string(text);
}

Status check_bill_by(std::string_view text) {
  constexpr std::string_view kLabel = "label:";
  if (text.starts_with(kLabel)) {
    if (text.size() > kLabel.size()) return ok_status();
    return malformed(text, "names no label (write label:team)");
  }
  std::vector<std::string_view> words = {"namespace", "user", "slurm_account", "owner", "node", "cluster", "gpu"};
  for (const OwnerKindRow& row : kOwnerKinds) {
    if (row.kind != OwnerKind::kUnknown) words.push_back(row.word);
  }
  if (std::find(words.begin(), words.end(), text) != words.end()) return ok_status();
  words.emplace_back("label:NAME");
  return malformed(text, "is not one of " + join_choices(words));
}

}  // namespace gpuledger::app
