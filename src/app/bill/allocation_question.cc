// SPDX-License-Identifier: Apache-2.0
#include "app/bill/allocation_question.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "app/bill/window.h"
#include "base/duration.h"
#include "base/quote.h"
#include "base/text.h"

namespace gpuledger::app {
namespace {

constexpr size_t kMostSets = 366;  // each is a bill of its own
constexpr size_t kMostAggregates = 5;
constexpr std::array<std::string_view, 6> kAggregates = {"cluster", "node", "namespace",
                                                         "pod",     "user", "slurm_account"};
// OpenCost has these too. They change nothing here: there is one way to compute, and one idle cost.
constexpr std::array<std::string_view, 4> kWithoutEffect = {
    "resolution", "idleByNode", "includeProportionalAssetResourceCosts", "includeAggregatedMetadata"};

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

Result<bool> take_bool(Parameters& parameters, const std::string& name) {
  const std::string value = take(parameters, name);
  if (value.empty() || value == "false" || value == "0") return false;
  if (value == "true" || value == "1") return true;
  return wrong(name + ": " + in_quotes(value) + " is not true or false");
}

bool is_label(std::string_view text) {
  constexpr std::string_view kStart = "label:";
  constexpr size_t kLongest = 317;  // of Kubernetes: a prefix of 253, a slash and a name of 63
  if (!text.starts_with(kStart)) return false;
  text.remove_prefix(kStart.size());
  return !text.empty() && text.size() <= kLongest && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-' || c == '/';
  });
}

Status read_aggregate(std::string_view text, AllocationQuestion& question) {
  if (text.empty()) text = "pod";
  if (text == "all") {
    question.in_one = true;
    question.by = "namespace";
    return ok_status();
  }
  size_t count = 0;
  while (!text.empty()) {
    const std::string_view one = take_until(text, ',');
    if (!contains(kAggregates, one) && !is_label(one))
      return wrong("aggregate: " + in_quotes(one) +
                   " is not known here (cluster, node, namespace, pod, label:NAME, user, slurm_account, all)");
    if (++count > kMostAggregates) return wrong(fmt::format("aggregate: more than {} at once", kMostAggregates));
    question.by.append(question.by.empty() ? "" : ",").append(one);
  }
  return ok_status();
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
  if (window.begin > now) return wrong("window: it begins in the future");
  if (window.end > now) window.end = std::chrono::floor<std::chrono::minutes>(now - kOnTheWay);
  for (auto begin = window.begin; begin < window.end; begin += step) {
    if (question.spans.size() == kMostSets)
      return wrong(fmt::format("step: more than {} sets; write a longer step", kMostSets));
    question.spans.push_back({begin, std::min(begin + step, window.end)});
  }
  return ok_status();
}

}  // namespace

std::string AllocationQuestion::key() const {
  std::string key = fmt::format("{} {} {} {}", by, in_one, include_idle, static_cast<int>(spread));
  for (const BillSpan& span : spans)
    key += fmt::format(" {}-{}", span.begin.time_since_epoch().count(), span.end.time_since_epoch().count());
  return key;
}

Result<AllocationQuestion> parse_allocation_question(std::string_view query, std::chrono::sys_seconds now) {
  GL_TRY(parameters, parse_query(query));
  AllocationQuestion question;
  const std::string window_text = take(parameters, "window");
  if (window_text.empty()) return wrong("window: is missing (write window=7d)");
  GL_TRY(window, parse_window(window_text, now));
  GL_TRY_STATUS(read_aggregate(take(parameters, "aggregate"), question));
  GL_TRY(accumulate, take_bool(parameters, "accumulate"));
  GL_TRY(include_idle, take_bool(parameters, "includeIdle"));
  GL_TRY(share_idle, take_bool(parameters, "shareIdle"));
  question.include_idle = include_idle;
  question.spread = share_idle ? Spread::kByUse : Spread::kKeep;
  const std::string step = take(parameters, "step");
  GL_TRY_STATUS(cut_into_steps(window, accumulate ? std::string() : step, now, question));
  for (const std::string_view name : kWithoutEffect) take(parameters, std::string(name));
  // A filter that is not applied would give wrong numbers without a word.
  if (!parameters.empty())
    return wrong(in_quotes(parameters.begin()->first) +
                 " is not known here (window, aggregate, step, accumulate, includeIdle, shareIdle)");
  return question;
}

}  // namespace gpuledger::app
