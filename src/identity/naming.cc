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
    if (told == names.inferred.end()) return {owner, Naming::kUnnamed};
    owner.name_space = told->second.name_space;
    owner.pod = told->second.pod;
    owner.container = told->second.container;
    return {owner, Naming::kComplete};
  }
  const PodView::Found found = home.ask_kubernetes ? names.pods->by_container_id(home.container_id) : PodView::Found{};
  if (found.pod && !is_pod(*found.pod, home.pod_uid)) return {owner, Naming::kDisagree};
  const Pod* const pod = found.pod ? found.pod : names.pods->by_uid(home.pod_uid);
  if (!pod) return {owner, Naming::kUnnamed};
  owner.name_space = pod->name_space;
  owner.pod = pod->name;
  owner.pod_uid = pod->uid;
  if (found.container) owner.container = found.container->name;
  // A container that has only begun is in nobody's status yet: its pod is certain all the same.
  return {owner, found.container || home.container_id.empty() ? Naming::kComplete : Naming::kUnnamed};
}

OwnerFound container_owner(const CgroupHome& home, const NameBook& names) {
  Owner owner;
  owner.kind = OwnerKind::kContainer;
  owner.runtime = home.runtime;
  owner.container_id = home.container_id;
  const auto daemon = names.containers.find(home.runtime);
  if (daemon == names.containers.end() || !daemon->second) return {owner, Naming::kUnnamed};
  const auto name = daemon->second->find(home.container_id);
  if (name == daemon->second->end()) return {owner, Naming::kUnnamed};
  owner.container = name->second;
  return {owner, Naming::kComplete};
}

}  // namespace

OwnerFound owner_of(const CgroupHome& home, const NameBook& names) {
  if (!home.pod_uid.empty()) return pod_owner(home, names);
  Owner owner;
  if (!home.slurm_job.empty()) {
    owner.kind = OwnerKind::kSlurmJob;
    owner.job = home.slurm_job;
    owner.step = home.slurm_step;
    return {owner, Naming::kComplete};
  }
  if (!home.container_id.empty()) return container_owner(home, names);
  owner.unit = home.unit;
  owner.user = home.user;
  return {owner, Naming::kComplete};
}

}  // namespace gpuledger::identity
