// SPDX-License-Identifier: Apache-2.0
#include "app/bill/seen_before.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuledger::app {

Status SeenBefore::read(const BillAsk& ask, const BillQuery& query) {
  const std::string names[] = {kMeterName, kBooksOpenedName};
  GL_TRY(answer, ask(fmt::format("last_over_time({}[1d])", select_names(names, query.match)), query.span.begin));
  for (const BillSeries& series : answer) {
    std::set<int64_t>& opened = gpus_[node_of(series)][std::string(series.own_label("uuid"))];
    if (series.label("__name__") != kBooksOpenedName) continue;
    if (const auto time = time_of(series.samples.back().value)) opened.insert(*time);
  }
  return ok_status();
}

bool SeenBefore::has_gpu(const BillNode& node, const std::string& uuid, const BillBooks& books) const {
  return std::any_of(gpus_.begin(), gpus_.end(), [&](const auto& each) {
    return each.second.contains(uuid) && (each.first == node || !books.nodes.contains(each.first));
  });
}

bool SeenBefore::has_books(const BillNode& node, const std::string& uuid, int64_t opened_ms) const {
  const auto gpus = gpus_.find(node);
  if (gpus == gpus_.end()) return false;
  const auto opened = gpus->second.find(uuid);
  return opened != gpus->second.end() && opened->second.contains(opened_ms);
}

void SeenBefore::name_the_lost(BillBooks& books) const {
  // A node without a label `node` has another name after its address changed; its GPUs are still on the bill.
  std::set<std::string> billed;
  for (const auto& [name, node] : books.nodes) {
    for (const auto& [uuid, gpu] : node.gpus) billed.insert(uuid);
  }
  constexpr const char* kWhy = "seen the day before, not in this span";
  for (const auto& [name, uuids] : gpus_) {
    const bool elsewhere =
        std::any_of(uuids.begin(), uuids.end(), [&](const auto& gpu) { return billed.contains(gpu.first); });
    if (!books.nodes.contains(name) && !elsewhere) {
      books.gaps.push_back({name.text(), books.span, kWhy});
      continue;
    }
    for (const auto& [uuid, opened] : uuids) {
      if (!billed.contains(uuid)) books.gaps.push_back({name.text() + " " + uuid, books.span, kWhy});
    }
  }
}

}  // namespace gpuledger::app
