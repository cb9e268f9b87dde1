// SPDX-License-Identifier: Apache-2.0
#include "identity/naming.h"

namespace gpuledger::identity {
namespace {

bool is_pod(const Pod& pod, std::string_view cgroup_uid) {
  return pod.uid == cgroup_uid || (!pod.manifest_hash.empty() && pod.manifest_hash == cgroup_uid);
}

OwnerFound pod_owner(const CgroupHome& home, const NameBook& names) {
  Owner owner;
  owner.kind = OwnerKind::kPod;
  owner.pod_uid = home.pod_uid;
  if (!names.pods) {
    const auto told = names.inferred.find(home.pod_uid);
    if (told == names.inferred.end()) return {owner, Naming::kUnnamed, home.container_id};
    owner.name_space = told->second.name_space;
    owner.pod = told->second.pod;
    owner.container = told->second.container;
    return {owner, Naming::kComplete, home.container_id};
  }
  const PodView::Found found = home.ask_kubernetes ? names.pods->by_container_id(home.container_id) : PodView::Found{};
  if (found.pod && !is_pod(*found.pod, home.pod_uid)) return {owner, Naming::kDisagree, home.container_id};
  const Pod* const pod = found.pod ? found.pod : names.pods->by_uid(home.pod_uid);
  if (!pod) return {owner, Naming::kUnnamed, home.container_id};
  owner.name_space = pod->name_space;
  owner.pod = pod->name;
  owner.pod_uid = pod->uid;
  if (found.container) owner.container = found.container->name;
  // A container that has just started is not in the pod's status yet. Its pod is certain.
  return {owner, found.container || home.container_id.empty() ? Naming::kComplete : Naming::kUnnamed,
          home.container_id};
}

OwnerFound container_owner(const std::string& runtime, const std::string& id, const NameBook& names) {
  Owner owner;
  owner.kind = OwnerKind::kContainer;
  owner.runtime = runtime;
  owner.container_id = id;
  const auto daemon = names.containers.find(runtime);
  if (daemon == names.containers.end() || !daemon->second.names) return {owner, Naming::kUnnamed, id};
  const auto name = daemon->second.names->find(id);
  if (name == daemon->second.names->end()) return {owner, Naming::kUnnamed, id};
  owner.container = name->second;
  return {owner, Naming::kComplete, id};
}

OwnerFound host_owner(const CgroupHome& home) {
  Owner owner;
  owner.unit = home.unit;
  owner.user = home.user;
  return {owner, Naming::kComplete, {}};
}

// A user may name a cgroup after the id of another user's container. Only the user's own daemon is trusted for it.
OwnerFound user_owner(const CgroupHome& home, const NameBook& names) {
  const auto daemon = names.containers.find(home.runtime);
  const bool his = daemon != names.containers.end() && daemon->second.names && home.whole_path && !home.user.empty() &&
                   daemon->second.user == home.user;
  if (!his || !daemon->second.names->contains(home.container_id)) return host_owner(home);
  return container_owner(home.runtime, home.container_id, names);
}

bool is_vouched_for(const CgroupHome& home, const NameBook& names) {
  return names.pods && names.pods->by_uid(home.pod_uid) && lives_below(names.own_cgroup, home.node.cgroup);
}

}  // namespace

OwnerFound owner_of(const CgroupHome& home, const NameBook& names) {
  using Payer = CgroupHome::Payer;
  switch (home.payer) {
    case Payer::kPod: return pod_owner(home, names);
    case Payer::kUser: return user_owner(home, names);
    case Payer::kJob: {
      Owner owner;
      owner.kind = home.scheduler->kind;
      owner.job = home.job;
      owner.step = home.step;
      return {owner, Naming::kComplete, {}};
    }
    case Payer::kContainer: {
      const bool nested = !home.pod_uid.empty();
      if (nested && is_vouched_for(home, names)) return pod_owner(home, names);
      const std::string& id = nested ? home.node.container_id : home.container_id;
      if (id.empty()) break;  // the runtime itself
      return container_owner(nested ? home.node.runtime : home.runtime, id, names);
    }
    case Payer::kHost: break;
  }
  return host_owner(home);
}

bool needs_names(const CgroupHome& home, std::string_view runtime) {
  using Payer = CgroupHome::Payer;
  if (home.payer != Payer::kContainer && home.payer != Payer::kUser) return false;
  return home.runtime == runtime || home.node.runtime == runtime;
}

}  // namespace gpuledger::identity
