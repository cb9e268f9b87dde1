// SPDX-License-Identifier: Apache-2.0
#include "app/bill/gaps.h"

#include <algorithm>

#include "app/bill/scrapes.h"

namespace gpuledger::app {

bool add_gap(const BillQuery& query, BillBooks& books, const std::string& node, int64_t from, int64_t to,
             const std::string& why) {
  constexpr int kPartsOfSpan = 20;
  constexpr std::chrono::seconds kLeast{5};  // nobody scrapes more often
  const std::chrono::seconds whole = query.span.end - query.span.begin;
  const std::chrono::seconds most = std::max(kLeast, std::min({query.step, kLookback, whole / kPartsOfSpan}));
  if (to - from <= most.count() * 1000) return false;
  books.gaps.push_back({node, {from_ms(from), from_ms(to)}, why});
  return true;
}

}  // namespace gpuledger::app
