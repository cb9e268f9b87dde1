// SPDX-License-Identifier: Apache-2.0
#include "app/bill/seen_before.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuledger::app {

Status SeenBefore::read(const BillAsk& ask, const BillQuery& query) {
  const std::string meter = select_series(query, kMeterName);
  GL_TRY(answer, ask(fmt::format("count_over_time({}[1d])", meter), query.span.begin));
  for (const BillSeries& series : answer) gpus_[node_of(series)].emplace(series.own_label("uuid"));
  return ok_status();
}

void SeenBefore::name_the_lost(BillBooks& books) const {
  // A node without a label `node` has another name after its address changed; its GPUs are still on the bill.
  std::set<std::string> billed;
  for (const auto& [name, node] : books.nodes) {
    for (const auto& [uuid, gpu] : node.gpus) billed.insert(uuid);
  }
  for (const auto& [name, uuids] : gpus_) {
    if (books.nodes.contains(name)) continue;
    if (std::includes(billed.begin(), billed.end(), uuids.begin(), uuids.end())) continue;
    books.gaps.push_back({name.text(), books.span, "seen the day before, not in this span"});
  }
}

}  // namespace gpuledger::app
