// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/bill/server.h"
#include "app/bill/statement.h"

namespace gpuledger::app {

struct BillQuery {
  BillSpan span;
  std::chrono::seconds step{3600};
  std::string match;                                         // matchers for all series; empty: all
  std::vector<std::chrono::sys_seconds> price_changes = {};  // within the span, in order
  bool share_allocated = false;              // an hour of a GPU is shared by those who hold slices of it
  std::optional<double> co2e_grams_per_kwh;  // at most one of the two
  std::string co2e_series;
  BillAsk ask_deduplicated = {};  // CO2e and tokens: one series of those of two replicas; empty: as all else
};

// The query's matchers and more.
inline std::string match_with(const BillQuery& query, const std::string& matchers) {
  return query.match + (query.match.empty() || matchers.empty() ? "" : ",") + matchers;
}
inline std::string select_series(const BillQuery& query, const std::string& name, const std::string& matchers = "") {
  return name + "{" + match_with(query, matchers) + "}";
}

// The range and resolution of a subquery: the server looks at every `seconds` of the last `length` seconds. A
// millisecond less, or servers that count both ends would see one look too many.
inline std::string looks_range(int64_t length, int64_t seconds) {
  return "[" + std::to_string(length * 1000 - 1) + "ms:" + std::to_string(seconds) + "s]";
}

// Servers count milliseconds.
inline int64_t to_ms(std::chrono::sys_seconds time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}
inline std::chrono::sys_seconds from_ms(int64_t time) {
  return std::chrono::sys_seconds(std::chrono::seconds(time / 1000));
}

}  // namespace gpuledger::app
