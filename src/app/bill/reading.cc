// SPDX-License-Identifier: Apache-2.0
#include "app/bill/reading.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/quote.h"

namespace gpuledger::app {
namespace {

constexpr char kBetween = '\x1f';
constexpr double kLargestCounter = 9e12;  // joules; in microjoules it still fits
constexpr int64_t kMillijoule = 1000;

enum class What {
  kMeter,
  kUnattributed,
  kEnergy,
  kGpuTime,
  kError,
  kClosedEnergy,
  kClosedGpuTime,
  kDeviceInfo,
  kPodInfo,
  kJobInfo,
  kSnapshotTime,
  kStartTime,
};

struct Meaning {
  What what;
  const OwnerKindRow* kind = nullptr;
};

constexpr std::pair<std::string_view, What> kOwnerSuffixes[] = {{"_energy_joules_total", What::kEnergy},
                                                                {"_gpu_seconds_total", What::kGpuTime},
                                                                {"_energy_standard_error_joules", What::kError}};
constexpr std::pair<std::string_view, What> kOthers[] = {
    {"gpu_ledger_device_energy_joules_total", What::kMeter},
    {"gpu_ledger_device_unattributed_joules_total", What::kUnattributed},
    {"gpu_ledger_closed_energy_joules", What::kClosedEnergy},
    {"gpu_ledger_closed_gpu_seconds", What::kClosedGpuTime},
    {"gpu_ledger_device_info", What::kDeviceInfo},
    {"gpu_ledger_pod_info", What::kPodInfo},
    {"gpu_ledger_snapshot_timestamp_seconds", What::kSnapshotTime},
};
constexpr std::string_view kStartTime = "process_start_time_seconds";

const std::unordered_map<std::string, Meaning>& meanings() {
  static const auto all = [] {
    std::unordered_map<std::string, Meaning> table;
    for (const auto& [name, what] : kOthers) table.emplace(name, Meaning{what});
    table.emplace(kStartTime, Meaning{What::kStartTime});
    for (const OwnerKindRow& row : kOwnerKinds) {
      const std::string start = "gpu_ledger_" + std::string(row.metric);
      for (const auto& [suffix, what] : kOwnerSuffixes) table.emplace(start + std::string(suffix), Meaning{what, &row});
      if (row.of_user) table.emplace(start + "_info", Meaning{What::kJobInfo, &row});
    }
    return table;
  }();
  return all;
}

// Fields once: of two names of one field the first.
std::vector<OwnerField> fields_of(const OwnerKindRow& row) {
  std::vector<OwnerField> fields;
  for (const OwnerField& field : row.fields) {
    const bool known =
        std::any_of(fields.begin(), fields.end(), [&](const OwnerField& other) { return other.value == field.value; });
    if (!known) fields.push_back(field);
  }
  return fields;
}

std::string add_owner(BillFacts::Owner&& owner, BillFacts& facts) {
  std::string key = owner.kind;
  key += owner.form == BillFacts::Owner::Form::kEnded ? "-" : "";
  for (const auto& [name, value] : owner.labels) key.append(1, kBetween).append(name).append("=").append(value);
  facts.owners.try_emplace(key, std::move(owner));
  return key;
}

std::string owner_of(const OwnerKindRow& row, const BillSeries& series, BillFacts& facts) {
  BillFacts::Owner owner{BillFacts::Owner::Form::kOwner, std::string(row.word), {}};
  for (const OwnerField& field : fields_of(row)) {
    if (const std::string_view value = series.own_label(field.name); !value.empty()) {
      owner.labels.emplace(field.name, value);
    }
  }
  return add_owner(std::move(owner), facts);
}

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
    for (const std::string& name : names) copy.append(series.label(name)).append(1, kBetween);
    return {node_of(series), std::string(series.label("instance")), copy, at_ms};
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
  const auto meaning = meanings().find(std::string(series.label("__name__")));
  return meaning != meanings().end() && meaning->second.what == What::kMeter;
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
      Target& target = targets.all[targets.key_of(series, sample.at_ms)];
      NodeReading& reading = target.reading;
      if (reading.gpus.empty()) {
        reading.node = node_of(series);
        if (reading.node.name.empty()) return wrong(series, "has neither a label node nor an instance");
        reading.instance = series.label("instance");
        reading.matchers = matchers_of(series);
        reading.at_ms = sample.at_ms;
      }
      GL_TRY(energy, micros(series, sample.value));
      const bool fresh = reading.gpus.try_emplace(uuid).second && target.uuids.emplace(index, uuid).second;
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

Status read_sample(const BillSeries& series, const Meaning& meaning, const std::string& owner, double value,
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
    case What::kError:
      if (std::isfinite(value) && value >= 0) gpu.standard_errors[owner] = value;
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

void read_facts(const BillSeries& series, const Meaning& meaning, BillFacts& facts) {
  const std::string cluster(series.label("cluster"));
  BillFacts::Labels labels;
  switch (meaning.what) {
    case What::kDeviceInfo: facts.models[std::string(series.own_label("uuid"))] = series.own_label("model"); break;
    case What::kPodInfo: {
      for (const auto& [name, value] : series.labels) {
        if (name.starts_with("label_")) labels[name] = value;
      }
      const auto name_space = series.own_label(kNamespaceField.name);
      const auto pod = series.own_label(kPodField.name);
      const auto uid = series.own_label(kPodUidField.name);
      // One that is missing now may have been there before: somebody changed --pod-labels.
      for (const auto& known :
           {BillFacts::pod_key(cluster, name_space, pod, uid), BillFacts::pod_key(cluster, name_space, pod, "")}) {
        for (const auto& [name, value] : labels) facts.pods[known][name] = value;
      }
      break;
    }
    case What::kJobInfo:
      for (const std::string_view name : {"uid", "user_name", "account", "partition"}) {
        if (const auto value = series.own_label(name); !value.empty()) labels.emplace(name, value);
      }
      facts.jobs[BillFacts::job_key(cluster, series.own_label(kSlurmJobIdField.name))].merge(labels);
      break;
    default: break;
  }
}

std::string owner_in(const BillSeries& series, const Meaning& meaning, BillFacts& facts) {
  if (meaning.what == What::kUnattributed) {
    return add_owner({BillFacts::Owner::Form::kNobody,
                      std::string(kNobodyKind),
                      {{"reason", std::string(series.own_label("reason"))}}},
                     facts);
  }
  return meaning.kind == nullptr ? std::string() : owner_of(*meaning.kind, series, facts);
}

Status read_series(const BillSeries& series, const Meaning& meaning, Targets& targets, BillFacts& facts) {
  if (meaning.what == What::kMeter) return ok_status();
  read_facts(series, meaning, facts);
  const bool of_target = meaning.what == What::kSnapshotTime || meaning.what == What::kStartTime;
  const bool of_gpu = !of_target && meaning.what != What::kDeviceInfo && meaning.what != What::kPodInfo &&
                      meaning.what != What::kJobInfo;
  if (!of_target && !of_gpu) return ok_status();
  const std::string owner = owner_in(series, meaning, facts);
  for (const BillSeries::Sample& sample : series.samples) {
    const auto target = targets.all.find(targets.key_of(series, sample.at_ms));
    if (target == targets.all.end()) {
      if (of_target) continue;  // another program's, or between two scrapes
      return wrong(series, "has no gpu_ledger_device_energy_joules_total of its scrape; is that one dropped?");
    }
    if (meaning.what == What::kSnapshotTime) target->second.reading.snapshot_at = sample.value;
    if (meaning.what == What::kStartTime) target->second.reading.started_at = sample.value;
    if (of_target) continue;
    const auto uuid = target->second.uuids.find(series.own_label("gpu"));
    if (uuid == target->second.uuids.end()) return wrong(series, "is of a GPU without a meter");
    GL_TRY_STATUS(read_sample(series, meaning, owner, sample.value, target->second.reading.gpus[uuid->second]));
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
  return kMillijoule + series * (1 + energy / kStep);
}

std::string BillFacts::pod_key(const std::string& cluster, std::string_view name_space, std::string_view pod,
                               std::string_view uid) {
  std::string key = cluster;
  for (const std::string_view part : {name_space, pod, uid}) key.append(1, kBetween).append(part);
  return key;
}

std::string BillFacts::job_key(const std::string& cluster, std::string_view id) {
  return std::string(cluster).append(1, kBetween).append(id);
}

std::string reading_selector(const std::string& matchers, bool one_node) {
  std::string names;
  for (const auto& [name, meaning] : std::map<std::string, Meaning>(meanings().begin(), meanings().end())) {
    if (meaning.what == What::kStartTime && !one_node) continue;
    names += (names.empty() ? "" : "|") + name;
  }
  return "{__name__=~\"" + names + "\"" + (matchers.empty() ? "" : "," + matchers) + "}";
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

Result<std::vector<NodeReading>> read_nodes(const std::vector<BillSeries>& answer, BillFacts& facts) {
  Targets targets;
  GL_TRY_STATUS(read_meters(answer, targets));
  facts.target_labels.insert(targets.names.begin(), targets.names.end());
  for (const BillSeries& series : answer) {
    const auto meaning = meanings().find(std::string(series.label("__name__")));
    if (meaning == meanings().end()) return wrong(series, "was not asked for");
    GL_TRY_STATUS(read_series(series, meaning->second, targets, facts));
  }
  std::vector<NodeReading> readings;
  for (auto& [key, target] : targets.all) readings.push_back(std::move(target.reading));
  return readings;
}

std::string ended_owner(const BillGroup& group, BillFacts& facts) {
  BillFacts::Owner owner{BillFacts::Owner::Form::kEnded, group.kind, {}};
  if (!group.name_space.empty()) owner.labels.emplace(kNamespaceField.name, group.name_space);
  return add_owner(std::move(owner), facts);
}

std::string allocated_pod(const BillSeries& series, BillFacts& facts) {
  BillFacts::Owner owner{BillFacts::Owner::Form::kOwner, std::string(owner_kind(OwnerKind::kPod).word), {}};
  for (const OwnerField& field : {kNamespaceField, kPodField}) {
    if (const auto value = series.own_label(field.name); !value.empty()) owner.labels.emplace(field.name, value);
  }
  return add_owner(std::move(owner), facts);
}

}  // namespace gpuledger::app
