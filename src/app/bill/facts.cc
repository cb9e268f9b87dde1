// SPDX-License-Identifier: Apache-2.0
#include "app/bill/facts.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "app/bill/reading.h"

namespace gpuledger::app {
namespace {

using What = SeriesMeaning::What;

constexpr char kBetween = '\x1f';

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

void read_job(const OwnerKindRow& kind, const BillSeries& series, BillFacts& facts) {
  BillFacts::Labels labels;
  for (const std::string_view name : {"uid", "user_name", "account", "partition"}) {
    if (const auto value = series.own_label(name); !value.empty()) labels.emplace(name, value);
  }
  facts.jobs[BillFacts::job_key(node_of(series), kind, series.own_label(job_label(kind)))].merge(labels);
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

}  // namespace

std::string BillFacts::pod_key(const std::string& cluster, std::string_view name_space, std::string_view pod,
                               std::string_view uid) {
  std::string key = cluster;
  for (const std::string_view part : {name_space, pod, uid}) key.append(1, kBetween).append(part);
  return key;
}

std::string BillFacts::job_key(const BillNode& node, const OwnerKindRow& kind, std::string_view id) {
  std::string key = node.cluster;
  for (const std::string_view part : {std::string_view(node.name), kind.word, id}) key.append(1, kBetween).append(part);
  return key;
}

std::string_view job_label(const OwnerKindRow& kind) {
  const auto named = [](const OwnerField& field) { return field.value == &Owner::job; };
  const auto found = std::find_if(kind.fields.begin(), kind.fields.end(), named);
  return found == kind.fields.end() ? std::string_view() : found->name;
}

void read_facts(const BillSeries& series, const SeriesMeaning& meaning, bool now, BillFacts& facts) {
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
      const auto [own, fresh] = facts.pods.try_emplace(BillFacts::pod_key(cluster, name_space, pod, uid));
      for (const auto& [name, value] : labels) own->second[name] = value;
      // Of several pods of a name that were there before, the one that is new.
      if (!now && !fresh) break;
      for (const auto& [name, value] : labels) {
        facts.pods[BillFacts::pod_key(cluster, name_space, pod, "")][name] = value;
      }
      break;
    }
    case What::kJobInfo: read_job(*meaning.kind, series, facts); break;
    default: break;
  }
}

std::string owner_of_series(const BillSeries& series, const SeriesMeaning& meaning, BillFacts& facts) {
  if (meaning.what == What::kUnattributed) {
    return add_owner({BillFacts::Owner::Form::kNobody,
                      std::string(kNobodyKind),
                      {{"reason", std::string(series.own_label("reason"))}}},
                     facts);
  }
  return meaning.kind == nullptr ? std::string() : owner_of(*meaning.kind, series, facts);
}

std::string ended_owner(const std::string& kind, const std::string& name_space, BillFacts& facts) {
  BillFacts::Owner owner{BillFacts::Owner::Form::kEnded, kind, {}};
  if (!name_space.empty()) owner.labels.emplace(kNamespaceField.name, name_space);
  return add_owner(std::move(owner), facts);
}

std::string owner_text(const std::string& owner, const BillFacts& facts) {
  const auto found = facts.owners.find(owner);
  if (found == facts.owners.end()) return "an owner";
  std::string text = found->second.kind + (found->second.form == BillFacts::Owner::Form::kEnded ? "s that ended" : "");
  for (const auto& [name, value] : found->second.labels) text.append(" ").append(name).append("=").append(value);
  return text;
}

std::string allocated_pod(const BillSeries& series, BillFacts& facts) {
  BillFacts::Owner owner{BillFacts::Owner::Form::kOwner, std::string(owner_kind(OwnerKind::kPod).word), {}};
  for (const OwnerField& field : {kNamespaceField, kPodField, kPodUidField}) {
    if (const auto value = series.own_label(field.name); !value.empty()) owner.labels.emplace(field.name, value);
  }
  if (series.own_label(kPodUidField.name).empty()) {
    // A later pod may have the name and other labels: this one keeps those of now.
    const auto now =
        facts.pods.find(BillFacts::pod_key(std::string(series.label("cluster")), series.own_label(kNamespaceField.name),
                                           series.own_label(kPodField.name), ""));
    if (now != facts.pods.end()) owner.labels.insert(now->second.begin(), now->second.end());
  }
  return add_owner(std::move(owner), facts);
}

std::string allocated_job(const BillSeries& series, BillFacts& facts) {
  const auto row = std::find_if(std::begin(kOwnerKinds), std::end(kOwnerKinds),
                                [](const OwnerKindRow& one) { return job_label(one) == kSlurmJobIdField.name; });
  read_job(*row, series, facts);
  return add_owner({BillFacts::Owner::Form::kOwner,
                    std::string(row->word),
                    {{std::string(kSlurmJobIdField.name), std::string(series.own_label(kSlurmJobIdField.name))}}},
                   facts);
}

}  // namespace gpuledger::app
