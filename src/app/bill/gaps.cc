// SPDX-License-Identifier: Apache-2.0
#include "app/bill/gaps.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/bill/amounts.h"
#include "app/bill/scrapes.h"

namespace gpuledger::app {
namespace {

std::chrono::seconds whole(const BillQuery& query) {
  return query.span.end - query.span.begin;
}

bool is_short(const BillQuery& query, int64_t milliseconds) {
  constexpr int kPartsOfSpan = 20;
  constexpr std::chrono::seconds kLeast{5};  // nobody scrapes more often
  const std::chrono::seconds most = std::max(kLeast, std::min({query.step, kLookback, whole(query) / kPartsOfSpan}));
  return milliseconds <= most.count() * 1000;
}

// A restart a day is no reason to call a month incomplete, one every five minutes is.
bool is_little(const BillQuery& query, int64_t milliseconds) {
  constexpr int kPartsOfSpan = 200;
  return is_short(query, milliseconds) || milliseconds <= (whole(query) / kPartsOfSpan).count() * 1000;
}

}  // namespace

bool add_gap(const BillQuery& query, BillBooks& books, const std::string& node, int64_t from, int64_t to,
             const std::string& why) {
  if (is_short(query, to - from)) return false;
  books.gaps.push_back({node, {from_ms(from), from_ms(to)}, why});
  return true;
}

void BillLacks::add(const std::string& name, int64_t from, int64_t to, const std::string& why) {
  if (!is_short(query_, to - from)) return gaps_.push_back({name, {from_ms(from), from_ms(to)}, why});
  Short& all = short_[name][why];
  if (all.count++ == 0) all.first_ms = from;
  all.sum_ms += std::max<int64_t>(to - from, 0);
  all.last_ms = to;
}

void BillLacks::name(BillBooks& books) const {
  books.gaps.insert(books.gaps.end(), gaps_.begin(), gaps_.end());
  for (const auto& [name, reasons] : short_) {
    int64_t sum_ms = 0;
    for (const auto& [why, all] : reasons) sum_ms += all.sum_ms;
    for (const auto& [why, all] : reasons) {
      const int64_t seconds = (all.sum_ms + 500) / 1000;
      const std::string times = all.count == 1 ? "" : fmt::format(", {} times, {} s in all", all.count, seconds);
      if (!is_little(query_, sum_ms)) {
        books.gaps.push_back({name, {from_ms(all.first_ms), from_ms(all.last_ms)}, why + times});
        continue;
      }
      books.remarks.push_back(fmt::format("{}: {}{} {}; what it used in {} s is not on this bill", name, why,
                                          all.count == 1 ? " at" : fmt::format(", {} times, the last at", all.count),
                                          time_text(from_ms(all.last_ms)), seconds));
    }
  }
}

}  // namespace gpuledger::app
