// SPDX-License-Identifier: Apache-2.0
#include "app/bill/grouping.h"

#include <algorithm>
#include <cctype>

namespace gpuledger::app {
namespace {

using Form = BillFacts::Owner::Form;

const OwnerKindRow* row_of(const std::string& kind) {
  for (const OwnerKindRow& row : kOwnerKinds) {
    if (row.word == kind) return &row;
  }
  return nullptr;
}

std::string label_of(const BillFacts::Labels& labels, std::string_view name) {
  const auto found = labels.find(std::string(name));
  return found == labels.end() ? std::string() : found->second;
}

bool is_pod(const BillFacts::Owner& owner) {
  return owner.kind == owner_kind(OwnerKind::kPod).word;
}

// All that is known of an owner: its own labels, and those of its pod or job.
BillFacts::Labels properties_of(const BillFacts& facts, const BillNode& node, const std::string& gpu,
                                const BillFacts::Owner& owner) {
  BillFacts::Labels all = owner.labels;
  if (is_pod(owner)) {
    const auto name_space = label_of(all, kNamespaceField.name);
    const auto pod = label_of(all, kPodField.name);
    auto found = facts.pods.find(BillFacts::pod_key(node.cluster, name_space, pod, label_of(all, kPodUidField.name)));
    if (found == facts.pods.end()) found = facts.pods.find(BillFacts::pod_key(node.cluster, name_space, pod, ""));
    if (found != facts.pods.end()) all.insert(found->second.begin(), found->second.end());
  }
  const OwnerKindRow* const kind = row_of(owner.kind);
  if (const auto id = kind ? label_of(all, job_label(*kind)) : std::string(); !id.empty()) {
    const auto found = facts.jobs.find(BillFacts::job_key(node, *kind, id));
    if (found != facts.jobs.end()) all.insert(found->second.begin(), found->second.end());
  }
  all["owner"] = owner.kind;
  all["node"] = node.name;
  if (!node.cluster.empty()) all["cluster"] = node.cluster;
  all["gpu"] = gpu;
  return all;
}

// An owner as one line shows it: a job without its steps, a pod without its containers.
std::string short_text(const OwnerKindRow& row, const BillFacts::Labels& labels) {
  Owner owner;
  owner.kind = row.kind;
  for (const OwnerField& field : row.fields) {
    if (field.value != &Owner::step) owner.*field.value = label_of(labels, field.name);
  }
  if (owner.job.empty()) owner.job = label_of(labels, job_label(row));
  return owner_text(owner);
}

// Empty: this owner has none.
std::string value_of(const std::string& by, const BillFacts::Owner& owner, const BillFacts::Labels& properties) {
  if (const std::string label = pod_label(by); !label.empty()) return label_of(properties, label);
  if (by == "slurm_account") return label_of(properties, "account");
  if (by == "user") {
    const std::string name = label_of(properties, "user_name");
    const std::string uid = label_of(properties, "uid");
    if (!name.empty()) return name;
    return uid.empty() ? label_of(properties, kUserField.name) : uid;
  }
  if (const OwnerKindRow* row = row_of(by); row != nullptr) {
    if (owner.kind != by) return {};
    if (owner.form == Form::kEnded) {
      const std::string name_space = label_of(properties, kNamespaceField.name);
      return "ended " + by + "s" + (name_space.empty() ? "" : " of " + name_space);
    }
    return short_text(*row, properties);
  }
  if (by == kNamespaceField.name && !is_pod(owner)) return {};
  return label_of(properties, by);
}

std::string no_group_name(const std::string& by, const BillFacts::Owner& owner, const BillFacts::Labels& properties) {
  if (is_pod(owner)) {
    if (const std::string label = pod_label(by); !label.empty()) return "no " + by.substr(by.find(':') + 1);
    const std::string name_space = label_of(properties, kNamespaceField.name);
    return name_space.empty() ? "pods without a name" : "pods of " + name_space;
  }
  const OwnerKindRow* row = row_of(owner.kind);
  if (owner.form == Form::kEnded || row == nullptr) return owner.kind + ": ended";
  if (row->of_user) {
    const std::string user = value_of("user", owner, properties);
    return owner.kind + ": of " + (user.empty() ? "unknown users" : user);
  }
  return owner.kind + ": " + short_text(*row, properties);
}

}  // namespace

std::string pod_label(const std::string& by) {
  constexpr std::string_view kStart = "label:";
  if (!by.starts_with(kStart)) return {};
  std::string name = "label_";
  for (const unsigned char c : by.substr(kStart.size())) name += std::isalnum(c) != 0 ? static_cast<char>(c) : '_';
  return name;
}

BillPlace place_of(const BillFacts& facts, const BillNode& node, const std::string& gpu, const BillFacts::Owner& owner,
                   const BillGroups& by) {
  BillPlace place;
  place.properties = properties_of(facts, node, gpu, owner);
  if (owner.form == Form::kNobody) {
    place.kind = LineKind::kNobody;
    place.name = label_of(owner.labels, "reason");
  } else if (owner.kind == owner_kind(OwnerKind::kUnknown).word) {
    place.kind = LineKind::kUnknown;
    place.name = owner.kind;
  }
  if (by.filter && !by.filter->matches([&](const std::string& property) {
        // A pod's name alone, as OpenCost has it.
        return property == kPodField.name ? label_of(place.properties, property)
                                          : value_of(property, owner, place.properties);
      })) {
    return {place.kind == LineKind::kOwner ? LineKind::kNoGroup : place.kind, std::string(kLeftOut), {}};
  }
  if (place.kind != LineKind::kOwner) return place;
  for (const std::string& one : by) {
    const std::string value = value_of(one, owner, place.properties);
    if (value.empty()) {
      place.kind = LineKind::kNoGroup;
      place.name = no_group_name(one, owner, place.properties);
      return place;
    }
    place.name += (place.name.empty() ? "" : " / ") + value;
  }
  return place;
}

bool anybody_has(const BillBooks& books, const std::string& by) {
  const BillFacts& facts = books.facts;
  // Servers add it to what they scrape, or do not.
  if (by == "cluster") {
    return std::any_of(books.nodes.begin(), books.nodes.end(),
                       [](const auto& node) { return !node.first.cluster.empty(); });
  }
  if (const std::string label = pod_label(by); !label.empty()) {
    return std::any_of(facts.pods.begin(), facts.pods.end(),
                       [&](const auto& pod) { return pod.second.contains(label); });
  }
  // A job's facts are kept by node, not with its owner.
  const bool of_jobs = std::any_of(facts.jobs.begin(), facts.jobs.end(),
                                   [&](const auto& job) { return !value_of(by, {}, job.second).empty(); });
  return of_jobs || std::any_of(facts.owners.begin(), facts.owners.end(), [&](const auto& each) {
           const BillFacts::Owner& owner = each.second;
           if (owner.form == Form::kNobody) return false;
           return by == "node" || !value_of(by, owner, properties_of(facts, {}, "any", owner)).empty();
         });
}

}  // namespace gpuledger::app
