// SPDX-License-Identifier: Apache-2.0
#include "app/bill/reading.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "base/quote.h"

namespace gpuledger::app {
namespace {

using What = SeriesMeaning::What;

constexpr char kBetweenLabels = '\x1f';
constexpr double kLargestCounter = 9e12;  // joules; in microjoules it still fits
constexpr double kLatest = 1e11;          // seconds since 1970; nobody's clock
constexpr int64_t kLeastRounding = 1000;

Error wrong(const BillSeries& series, const std::string& why) {
  constexpr size_t kLongest = 400;
  return {Code::kMalformed, clean_text(series.text(), kLongest) + " " + why};
}

Error there_twice(const BillSeries& series) {
  return wrong(series, "is there twice; let the server deduplicate its replicas, or choose one with --match");
}

Result<int64_t> micros(const BillSeries& series, double value) {
  if (!(value >= 0) || value > kLargestCounter) {
    return wrong(series, "is " + std::to_string(value) + ", which no counter can be");
  }
  return std::llround(static_cast<long double>(value) * 1'000'000);
}

// A scrape, and which UUID has which index in it.
struct Target {
  NodeReading reading;
  std::map<std::string, std::string, std::less<>> uuids;
};
// Two servers that scrape one exporter differ in labels of their own, as `replica`.
using TargetKey = std::tuple<BillNode, std::string, std::string, int64_t>;
struct Targets {
  std::set<std::string> names;  // of labels that every series of a target has
  std::map<TargetKey, Target> all;

  TargetKey key_of(const BillSeries& series, int64_t at_ms) const {
    std::string copy;
    for (const std::string& name : names) copy.append(series.label(name)).append(1, kBetweenLabels);
    return {node_of(series), std::string(series.label("instance")), copy, at_ms};
  }
  // The one of the sample, new if need be.
  Result<Target*> add(const BillSeries& series, int64_t at_ms) {
    const TargetKey key = key_of(series, at_ms);
    const auto [place, fresh] = all.try_emplace(key);
    if (!fresh) return &place->second;
    NodeReading& reading = place->second.reading;
    std::tie(reading.node, reading.instance, reading.copy, reading.at_ms) = key;
    reading.matchers = matchers_of(series);
    if (reading.node.name.empty()) return wrong(series, "has neither a label node nor an instance");
    return &place->second;
  }
};

// A label that only some series of a target have.
bool is_of_series(std::string_view name) {
  for (const std::string_view own : {"__name__", "gpu", "uuid", "reason", "kind", "energy_estimated"}) {
    if (name == own) return true;
  }
  const auto same = [&](const OwnerField& field) { return field.name == name; };
  return name.starts_with("exported_") || std::any_of(std::begin(kOwnerFields), std::end(kOwnerFields), same) ||
         std::any_of(std::begin(kOwnerFieldAliases), std::end(kOwnerFieldAliases), same);
}

bool is_meter(const BillSeries& series) {
  const SeriesMeaning* meaning = meaning_of(series.label("__name__"));
  return meaning != nullptr && meaning->what == What::kMeter;
}

// The meters say which scrapes and GPUs there are.
Status read_meters(const std::vector<BillSeries>& answer, Targets& targets) {
  for (const BillSeries& series : answer) {
    if (!is_meter(series)) continue;
    for (const auto& [name, value] : series.labels) {
      if (!is_of_series(name)) targets.names.insert(name);
    }
  }
  for (const BillSeries& series : answer) {
    if (!is_meter(series)) continue;
    const std::string uuid(series.own_label("uuid"));
    const std::string_view index = series.own_label("gpu");
    if (uuid.empty() || index.empty()) return wrong(series, "lacks its label uuid or gpu");
    for (const BillSeries::Sample& sample : series.samples) {
      GL_TRY(target, targets.add(series, sample.at_ms));
      NodeReading& reading = target->reading;
      GL_TRY(energy, micros(series, sample.value));
      const bool fresh = reading.gpus.try_emplace(uuid).second && target->uuids.emplace(index, uuid).second;
      if (!fresh) { return there_twice(series); }
      reading.gpus[uuid].energy = energy;
    }
  }
  return ok_status();
}

Status book(const BillSeries& series, std::map<BillAccount, int64_t>& accounts, BillAccount account, double value) {
  GL_TRY(amount, micros(series, value));
  if (!accounts.try_emplace(std::move(account), amount).second) { return there_twice(series); }
  return ok_status();
}

BillQuantity energy_quantity(const BillSeries& series) {
  return series.own_label("energy_estimated") == "true" ? BillQuantity::kShared : BillQuantity::kAlone;
}

Status read_sample(const BillSeries& series, const SeriesMeaning& meaning, const std::string& owner, double value,
                   GpuReading& gpu) {
  const OwnerKindRow* kind = meaning.kind;
  const auto group_of = [&](BillQuantity quantity) {
    BillGroup group{std::string(kind->word), "", quantity};
    if (kind->kind == OwnerKind::kPod) group.name_space = series.own_label(kNamespaceField.name);
    return group;
  };
  const auto closed_group = [&](BillQuantity quantity) {
    BillGroup group{std::string(series.own_label("kind")), "", quantity};
    // Others have none of their own: what stands there then is the exporter's pod's.
    if (group.kind == owner_kind(OwnerKind::kPod).word) group.name_space = series.own_label(kNamespaceField.name);
    return group;
  };
  switch (meaning.what) {
    case What::kUnattributed:
      return book(series, gpu.accounts, {{std::string(kNobodyKind), "", BillQuantity::kAlone}, owner}, value);
    case What::kEnergy: return book(series, gpu.accounts, {group_of(energy_quantity(series)), owner}, value);
    case What::kGpuTime: return book(series, gpu.accounts, {group_of(BillQuantity::kGpuTime), owner}, value);
    case What::kBooksOpened: gpu.opened_ms = time_of(value); return ok_status();
    case What::kBooksRun:
      if (value >= 1 && value <= kLargestCounter) gpu.run = std::llround(value);
      return ok_status();
    case What::kError:
      if (value >= 0 && value <= kLargestCounter) gpu.standard_errors[owner] = value;
      return ok_status();
    case What::kClosedEnergy:
    case What::kClosedGpuTime: {
      const bool time = meaning.what == What::kClosedGpuTime;
      GL_TRY(amount, micros(series, value));
      const auto group = closed_group(time ? BillQuantity::kGpuTime : energy_quantity(series));
      return gpu.closed.try_emplace(group, amount).second ? ok_status() : Status(there_twice(series));
    }
    default: return ok_status();
  }
}

// Null: it says nothing of a target.
std::optional<int64_t> NodeReading::*target_time(What what) {
  switch (what) {
    case What::kSnapshotTime: return &NodeReading::snapshot_ms;
    case What::kStartTime: return &NodeReading::started_ms;
    case What::kBootTime: return &NodeReading::booted_ms;
    default: return nullptr;
  }
}

Status read_series(const BillSeries& series, const SeriesMeaning& meaning, bool now, Targets& targets,
                   BillFacts& facts) {
  if (meaning.what == What::kMeter) return ok_status();
  read_facts(series, meaning, now, facts);
  const auto of_target = target_time(meaning.what);
  const bool of_gpu = of_target == nullptr && meaning.what != What::kDeviceInfo && meaning.what != What::kPodInfo &&
                      meaning.what != What::kJobInfo;
  if (of_target == nullptr && !of_gpu) return ok_status();
  const std::string owner = owner_of_series(series, meaning, facts);
  for (const BillSeries::Sample& sample : series.samples) {
    if (of_target != nullptr) {
      const auto found = targets.all.find(targets.key_of(series, sample.at_ms));
      // Else another program's, or between two scrapes.
      if (found != targets.all.end()) found->second.reading.*of_target = time_of(sample.value);
      continue;
    }
    GL_TRY(target, targets.add(series, sample.at_ms));
    const auto uuid = target->uuids.find(series.own_label("gpu"));
    if (uuid == target->uuids.end()) {
      target->reading.lacks =
          wrong(series, std::string("has no ") + kMeterName + " of its scrape; is that one dropped?").message;
      continue;
    }
    GL_TRY_STATUS(read_sample(series, meaning, owner, sample.value, target->reading.gpus[uuid->second]));
  }
  return ok_status();
}

}  // namespace

Wide GpuReading::imbalance() const {
  Wide rest = energy;
  for (const auto& [account, value] : accounts) {
    if (account.group.quantity != BillQuantity::kGpuTime) rest -= value;
  }
  for (const auto& [group, value] : closed) {
    if (group.quantity != BillQuantity::kGpuTime) rest -= value;
  }
  return rest;
}

int64_t GpuReading::rounding() const {
  constexpr int64_t kStep = int64_t{1} << 52;  // a double's steps
  const auto series = static_cast<int64_t>(accounts.size() + closed.size() + 1);
  return kLeastRounding + series * (1 + energy / kStep);
}

// Scrapes are sorted by their times: NaN has no place among them.
std::optional<int64_t> time_of(double value) {
  return value > 0 && value < kLatest ? std::optional<int64_t>(std::llround(value * 1000)) : std::nullopt;
}

BillNode node_of(const BillSeries& series) {
  const std::string_view node = series.own_label("node");
  return {std::string(series.label("cluster")), std::string(node.empty() ? series.label("instance") : node)};
}

std::string matchers_of(const BillSeries& series) {
  std::string out;
  const auto add = [&](std::string_view name) {
    out += (out.empty() ? "" : ",") + std::string(name) + "=" + in_quotes(series.label(name));
  };
  add("cluster");  // empty: only series without one
  if (!series.label("exported_node").empty()) {
    add("exported_node");
  } else {
    add(series.label("node").empty() ? "instance" : "node");
  }
  return out;
}

Result<std::vector<NodeReading>> read_nodes(const std::vector<BillSeries>& answer, BillFacts& facts, bool now) {
  Targets targets;
  GL_TRY_STATUS(read_meters(answer, targets));
  for (const BillSeries& series : answer) {
    if (!is_meter(series)) continue;
    if (const auto replica = series.label("replica"); !replica.empty()) facts.server_replicas.emplace(replica);
  }
  for (const BillSeries& series : answer) {
    const SeriesMeaning* meaning = meaning_of(series.label("__name__"));
    if (meaning == nullptr) return wrong(series, "was not asked for");
    GL_TRY_STATUS(read_series(series, *meaning, now, targets, facts));
  }
  std::vector<NodeReading> readings;
  for (auto& [key, target] : targets.all) readings.push_back(std::move(target.reading));
  return readings;
}

}  // namespace gpuledger::app
