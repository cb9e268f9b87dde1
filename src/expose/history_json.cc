// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <unordered_map>

#include "expose/expose.h"
#include "expose/json_fields.h"

// /api/v1/history. Watts are joules by time, as everywhere in the ledger.
namespace gpuledger::expose {
namespace {

// Owners are written once, and named by their place in that list.
class OwnerPlaces {
 public:
  size_t place_of(const HistoryOwner& owner) {
    const auto [found, is_new] = places_.try_emplace(&owner, list_.size());
    if (is_new) list_.push_back(&owner);
    return found->second;
  }
  const std::vector<const HistoryOwner*>& list() const { return list_; }

 private:
  std::unordered_map<const HistoryOwner*, size_t> places_;
  std::vector<const HistoryOwner*> list_;
};

void write_point(JsonText& json, const HistoryPoint& point, const Timestamp& at, OwnerPlaces& owners) {
  const auto wall = [&](Nanoseconds steady) { return seconds_of(at.wall - (at.steady - steady)); };
  json.open('{');
  json.field("energy_joules", point.measured);
  json.field("from", wall(point.from));
  json.field("others_joules", point.others);
  json.name("owners");
  json.open('[');
  for (const HistoryPart& part : point.parts) {
    json.open('[');
    json.value(owners.place_of(*part.owner));
    json.value(part.energy);
    json.close(']');
  }
  json.close(']');
  if (point.power_limit) json.field("power_limit_watts", point.power_limit->watts());
  json.field("to", wall(point.to));
  json.field("unattributed_joules", point.unattributed);
  json.close('}');
}

}  // namespace

std::string write_history(const History& history) {
  std::map<GpuUuid, std::vector<const HistoryPoint*>> gpus;
  size_t points = 0;
  size_t parts = 0;
  for (const auto& step : history.steps) {
    for (const HistoryPoint& point : step->points) {
      gpus[point.gpu].push_back(&point);
      ++points;
      parts += point.parts.size();
    }
  }
  std::vector<const std::vector<const HistoryPoint*>*> by_index;
  for (const auto& [gpu, list] : gpus) by_index.push_back(&list);
  std::sort(by_index.begin(), by_index.end(),
            [](const auto* a, const auto* b) { return a->back()->gpu_index < b->back()->gpu_index; });
  constexpr size_t kUsualPoint = 180;
  constexpr size_t kUsualPart = 18;
  JsonText json(4096 + kUsualPoint * points + kUsualPart * parts);
  OwnerPlaces owners;
  json.open('{');
  json.field("at", seconds_of(history.at.wall));
  json.name("gpus");
  json.open('[');
  for (const auto* list : by_index) {
    json.open('{');
    json.field("gpu", list->back()->gpu_index);
    json.field("gpu_uuid", std::string_view(list->back()->gpu.text));
    json.name("points");
    json.open('[');
    for (const HistoryPoint* point : *list) write_point(json, *point, history.at, owners);
    json.close(']');
    json.close('}');
  }
  json.close(']');
  json.name("owners");
  json.open('[');
  for (const HistoryOwner* owner : owners.list()) {
    json.open('{');
    json.field_if_any("namespace", owner->name_space);
    json.field("owner", owner_kind(owner->kind).word);
    json.field("owner_text", std::string_view(owner->text));
    json.close('}');
  }
  json.close(']');
  json.field("step_seconds", seconds_of(history.step));
  json.close('}');
  return json.take() + "\n";
}

}  // namespace gpuledger::expose
