// SPDX-License-Identifier: Apache-2.0
#include "app/bill/unmet.h"

#include <algorithm>
#include <set>

#include "app/bill/grouping.h"
#include "base/quote.h"

namespace gpuledger::app {

std::map<std::string, std::string> find_unmet(const BillBooks& books, const BillView& view) {
  std::map<std::string, std::string> out;
  const bool owned = std::any_of(books.facts.owners.begin(), books.facts.owners.end(), [](const auto& each) {
    return each.second.form == BillFacts::Owner::Form::kOwner &&
           each.second.kind != owner_kind(OwnerKind::kUnknown).word;
  });
  std::map<std::string, std::string> words;  // and what asks for them
  if (view.by.filter) {
    std::set<std::string> filtered;
    view.by.filter->add_properties_to(filtered);
    for (const std::string& by : filtered) words[by] = "filter=";
  }
  for (const std::string& by : view.by) words[by] = view.must_exist ? "--by=" : "aggregate=";
  for (const auto& [by, asker] : words) {
    if (!owned || anybody_has(books, by)) continue;
    const std::string asked = asker + by;
    const std::string label = pod_label(by);
    const char* const hint = by == "cluster" ? "; the meters of no node have a label cluster" : "";
    out[asked] = asked + ": nothing in this span has it" +
                 (label.empty() ? hint
                                : "; gpu_ledger_pod_info has no label " + label +
                                      ": start the exporters with --pod-labels, or check the spelling");
  }
  std::set<std::string> models;
  for (const auto& [uuid, model] : books.facts.models) models.insert(model);
  std::string known;
  for (const std::string& one : models) known += (known.empty() ? "" : ", ") + in_quotes(one);
  for (const auto& [model, price] : view.prices.per_gpu_hour) {
    if (models.contains(model)) continue;
    out["--price-per-gpu-hour=" + model] = "--price-per-gpu-hour: no node has a GPU of the model " + in_quotes(model) +
                                           (known.empty() ? "" : " (there is " + known + ")");
  }
  return out;
}

}  // namespace gpuledger::app
