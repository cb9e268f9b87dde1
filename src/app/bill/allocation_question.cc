// SPDX-License-Identifier: Apache-2.0
#include "app/bill/allocation_question.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>

#include "app/bill/window.h"
#include "base/duration.h"
#include "base/quote.h"
#include "base/text.h"

namespace gpuledger::app {
namespace {

constexpr size_t kMostSets = 366;  // each is a bill of its own
constexpr size_t kMostAggregates = 5;
// OpenCost groups by these too. Nobody has one here, except for a container outside Kubernetes: all is without a group,
// and the answer warns of it.
constexpr std::array<std::string_view, 9> kNobodyHas = {"controller", "controllerKind", "controllerName",
                                                        "deployment", "statefulset",    "daemonset",
                                                        "job",        "service",        "container"};
// OpenCost has these too. They change nothing here: there is one way to compute, one idle cost and no load balancer,
// and every answer has all metrics.
constexpr std::array<std::string_view, 6> kWithoutEffect = {
    "resolution", "idleByNode", "includeProportionalAssetResourceCosts", "includeAggregatedMetadata",
    "metrics",    "sharelb"};

struct CalendarUnit {
  std::string_view word;
  std::chrono::seconds longest;  // from the beginning of one it ends in the next, or at its beginning
};
constexpr std::array<CalendarUnit, 6> kCalendarUnits = {{{"hour", std::chrono::hours(1)},
                                                         {"day", std::chrono::days(1)},
                                                         {"week", std::chrono::days(7)},
                                                         {"weeknow", std::chrono::days(7)},  // the front end's
                                                         {"month", std::chrono::days(31)},
                                                         {"quarter", std::chrono::days(92)}}};

Error wrong(std::string message) {
  return {Code::kMalformed, std::move(message)};
}

template <size_t kSize>
bool contains(const std::array<std::string_view, kSize>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// A name or value of a query, as forms write it.
Result<std::string> decode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return wrong("the query has a % that is not followed by two hexadecimal digits");
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

using Parameters = std::map<std::string, std::string>;

Result<Parameters> parse_query(std::string_view query) {
  Parameters all;
  while (!query.empty()) {
    std::string_view pair = take_until(query, '&');
    if (pair.empty()) continue;
    GL_TRY(name, decode(take_until(pair, '=')));
    GL_TRY(value, decode(pair));
    if (!all.emplace(name, value).second) return wrong(in_quotes(name) + " is given twice");
  }
  return all;
}

// The value, removed from the others; empty if it was not given.
std::string take(Parameters& parameters, const std::string& name) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return {};
  std::string value = std::move(found->second);
  parameters.erase(found);
  return value;
}

std::optional<bool> to_bool(std::string_view value) {
  if (value.empty() || value == "false" || value == "0") return false;
  if (value == "true" || value == "1") return true;
  return std::nullopt;
}

Result<bool> take_bool(Parameters& parameters, const std::string& name) {
  const std::string value = take(parameters, name);
  const auto parsed = to_bool(value);
  if (!parsed) return wrong(name + ": " + in_quotes(value) + " is not true or false");
  return *parsed;
}

bool is_label(std::string_view text) {
  constexpr std::string_view kStart = "label:";
  return text.starts_with(kStart) && is_label_name(text.substr(kStart.size()));
}

Status check_group(std::string_view parameter, std::string_view one, std::string_view or_all) {
  if (contains(kAllocationProperties, one) || contains(kNobodyHas, one) || is_label(one)) return ok_status();
  return wrong(
      fmt::format("{}: {} is not known here (cluster, node, namespace, pod, label:NAME, user, slurm_account{})",
                  parameter, in_quotes(one), or_all));
}

Status read_groups(std::string_view text, AllocationQuestion& question) {
  if (text.empty()) text = "pod";
  if (text == "all") {
    question.in_one = true;
    question.by = "namespace";
    return ok_status();
  }
  size_t count = 0;
  while (!text.empty()) {
    const std::string_view one = take_until(text, ',');
    GL_TRY_STATUS(check_group("aggregate", one, ", all"));
    if (++count > kMostAggregates) return wrong(fmt::format("aggregate: more than {} at once", kMostAggregates));
    question.by.append(question.by.empty() ? "" : ",").append(one);
  }
  return ok_status();
}

Error too_many_sets() {
  return wrong(fmt::format("step: more than {} sets; write a longer step or accumulate", kMostSets));
}

Status cut_into_steps(BillSpan window, const std::string& step_text, std::chrono::sys_seconds now,
                      AllocationQuestion& question) {
  std::chrono::seconds step = std::max<std::chrono::seconds>(window.end - window.begin, std::chrono::minutes(1));
  if (!step_text.empty()) {
    const auto parsed = parse_duration(step_text);
    if (!parsed.ok()) return wrong("step: " + parsed.error().message);
    if (*parsed < std::chrono::minutes(1)) return wrong("step: " + in_quotes(step_text) + " is shorter than a minute");
    step = std::chrono::floor<std::chrono::seconds>(*parsed);
  }
  window.end = std::min(window.end, newest_end(now));
  for (auto begin = window.begin; begin < window.end; begin += step) {
    if (question.spans.size() == kMostSets) return too_many_sets();
    question.spans.push_back({begin, std::min(begin + step, window.end)});
  }
  return ok_status();
}

std::chrono::sys_seconds begin_of(const CalendarUnit& unit, std::chrono::sys_seconds time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  if (unit.word == "hour") return std::chrono::floor<std::chrono::hours>(time);
  if (unit.word == "day") return day;
  if (unit.word.starts_with("week")) return day - (std::chrono::weekday(day) - std::chrono::Sunday);
  const unsigned months = unit.word == "quarter" ? 3 : 1;
  const std::chrono::month first((static_cast<unsigned>(date.month()) - 1) / months * months + 1);
  return std::chrono::sys_days(date.year() / first / 1);
}

// As OpenCost: all of each hour, day, week (from Sunday), month or quarter of which the window has a part.
Status cut_into_units(const BillSpan& window, const CalendarUnit& unit, std::chrono::sys_seconds now,
                      AllocationQuestion& question) {
  const auto end = std::min(window.end, newest_end(now));
  for (auto begin = begin_of(unit, window.begin); begin < end; begin = begin_of(unit, begin + unit.longest)) {
    if (question.spans.size() == kMostSets) return too_many_sets();
    question.spans.push_back({begin, std::min(begin_of(unit, begin + unit.longest), newest_end(now))});
  }
  return ok_status();
}

Status cut(const BillSpan& window, Parameters& parameters, std::chrono::sys_seconds now, AllocationQuestion& question) {
  const std::string step = take(parameters, "step");
  const std::string accumulate = take(parameters, "accumulate");
  const auto unit = std::find_if(kCalendarUnits.begin(), kCalendarUnits.end(),
                                 [&](const CalendarUnit& one) { return one.word == accumulate; });
  if (unit != kCalendarUnits.end()) return cut_into_units(window, *unit, now, question);
  if (accumulate == "all") return cut_into_steps(window, {}, now, question);
  const auto in_one_set = to_bool(accumulate);
  if (!in_one_set)
    return wrong("accumulate: " + in_quotes(accumulate) +
                 " is not true, false, all, hour, day, week, month or quarter");
  return cut_into_steps(window, *in_one_set ? std::string() : step, now, question);
}

Status read_sets(const BillSpan& window, Parameters& parameters, std::chrono::sys_seconds now,
                 AllocationQuestion& question) {
  GL_TRY_STATUS(read_groups(take(parameters, "aggregate"), question));
  GL_TRY(include_idle, take_bool(parameters, "includeIdle"));
  GL_TRY(share_idle, take_bool(parameters, "shareIdle"));
  question.include_idle = include_idle;
  question.spread = share_idle ? Spread::kByUse : Spread::kKeep;
  for (const std::string_view name : kWithoutEffect) take(parameters, std::string(name));
  return cut(window, parameters, now, question);
}

Status read_names(const BillSpan& window, Parameters& parameters, std::chrono::sys_seconds now,
                  AllocationQuestion& question) {
  constexpr size_t kMostNames = 1000;
  question.by = take(parameters, "field");
  if (question.by.empty()) question.by = "pod";
  GL_TRY_STATUS(check_group("field", question.by, ""));
  question.search = take(parameters, "search");
  if (const std::string limit = take(parameters, "limit"); !limit.empty()) {
    const auto [end, error] = std::from_chars(limit.data(), limit.data() + limit.size(), question.most_names);
    if (error != std::errc() || end != limit.data() + limit.size() || question.most_names == 0 ||
        question.most_names > kMostNames)
      return wrong(fmt::format("limit: {} is not a number from 1 to {}", in_quotes(limit), kMostNames));
  }
  return cut_into_steps(window, {}, now, question);
}

}  // namespace

std::string AllocationQuestion::key() const {
  std::string key = fmt::format("{} {} {} {} {} {}", by, in_one, include_idle, static_cast<int>(spread),
                                static_cast<int>(form), most_names);
  for (const BillSpan& span : spans)
    key += fmt::format(" {}-{}", span.begin.time_since_epoch().count(), span.end.time_since_epoch().count());
  return key + " " + in_quotes(search) + " " + filter_text;  // last: it may be anything
}

Result<AllocationQuestion> parse_allocation_question(std::string_view query, std::chrono::sys_seconds now,
                                                     AllocationForm form) {
  GL_TRY(parameters, parse_query(query));
  AllocationQuestion question;
  question.form = form;
  const std::string window_text = take(parameters, "window");
  if (window_text.empty()) return wrong("window: is missing (write window=7d)");
  GL_TRY(window, parse_window(window_text, now));
  if (window.begin > now) return wrong("window: it begins in the future");
  GL_TRY_STATUS(form == AllocationForm::kNames ? read_names(window, parameters, now, question)
                                               : read_sets(window, parameters, now, question));
  question.filter_text = take(parameters, "filter");
  if (!question.filter_text.empty()) {
    GL_TRY(filter, parse_allocation_filter(question.filter_text));
    question.filter = std::make_shared<const AllocationFilter>(std::move(filter));
  }
  // One that is not applied would give wrong numbers without a word.
  if (!parameters.empty())
    return wrong(in_quotes(parameters.begin()->first) + " is not known here (window, filter, " +
                 (form == AllocationForm::kNames ? "field, search, limit)"
                                                 : "aggregate, step, accumulate, includeIdle, shareIdle)"));
  return question;
}

}  // namespace gpuledger::app
