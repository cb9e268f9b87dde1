#include "identity/resolver.h"

#include <algorithm>

#include "identity/cgroup_path.h"

namespace gpuledger::identity {
namespace {

struct OwnerFound {
  Owner owner;
  bool unnamed = false;  // in a pod whose name nobody could tell
};

OwnerFound owner_of(const CgroupHome& home, const PodView& pods) {
  Owner owner;
  if (!home.pod_uid.empty()) {
    owner.kind = OwnerKind::kPod;
    owner.pod_uid = home.pod_uid;
    const PodView::Found found = pods.by_container_id(home.container_id);
    const Pod* const pod = found.pod ? found.pod : pods.by_uid(home.pod_uid);
    if (!pod) return {owner, true};
    owner.name_space = pod->name_space;
    owner.pod = pod->name;
    owner.pod_uid = pod->uid;
    if (found.container) owner.container = found.container->name;
    return {owner, false};
  }
  if (!home.slurm_job.empty()) {
    owner.kind = OwnerKind::kSlurmJob;
    owner.job = home.slurm_job;
    owner.step = home.slurm_step;
  } else if (!home.container_id.empty()) {
    owner.kind = OwnerKind::kContainer;
    owner.runtime = home.runtime;
    owner.container_id = home.container_id;
  }
  return {owner, false};
}

}  // namespace

std::optional<ProcessIdentity> Resolver::read_identity(Pid pid, const PodView& pods, bool& without_owner) {
  constexpr int kTries = 2;  // a pid that changes hands twice in a row is not worth a third look
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const auto before = proc_.read_start_ticks(pid);
    if (!before.ok()) return std::nullopt;
    const auto name = proc_.read_name(pid);
    const auto cgroup = proc_.read_cgroup(pid);
    const auto after = proc_.read_start_ticks(pid);
    if (!after.ok()) return std::nullopt;
    if (*before != *after) continue;

    ProcessIdentity identity;
    identity.key = {pid, *before};
    identity.name = name.ok() ? *name : "unknown";
    identity.start_time_seconds = proc_.start_time_seconds(*before);
    const CgroupHome home = cgroup.ok() ? parse_cgroup(*cgroup) : CgroupHome{};
    identity.container_id = home.container_id;
    OwnerFound found = owner_of(home, pods);
    identity.owner = std::move(found.owner);
    without_owner = found.unnamed;
    return identity;
  }
  return std::nullopt;
}

// True: the process is there and map holds it.
bool Resolver::refresh(Pid pid, bool scanned, const PodView& pods, IdentityMap& map) {
  const auto known = known_.find(pid);
  const auto forget = [&] {
    known_.erase(known);
    gone_.insert(pid);
    map.rescan_wanted = true;
    return false;
  };
  if (known != known_.end() && !scanned) {
    const auto start = proc_.read_start_ticks(pid);
    // Another start time: the pid is somebody else's now, but what the driver listed was the one who left.
    if (!start.ok() || *start != known->second.identity.key.start_ticks) return forget();
    map.by_pid[pid] = known->second.identity;
    return true;
  }
  bool without_owner = false;
  auto identity = read_identity(pid, pods, without_owner);
  if (!identity) return known != known_.end() ? forget() : false;
  gone_.erase(pid);
  map.by_pid[pid] = *identity;
  known_[pid] = {std::move(*identity), without_owner};
  return true;
}

IdentityMap Resolver::resolve(const SampleBatch& batch) {
  static const auto no_pods = std::make_shared<const PodView>();
  IdentityMap map;
  std::set<Pid> pids;
  for (const DeviceSample& device : batch.devices) {
    for (const ProcessSample& process : device.processes) pids.insert(process.pid);
  }
  const bool unknown_pid = std::any_of(pids.begin(), pids.end(), [&](Pid pid) { return !known_.contains(pid); });
  auto pods = directory_.pods && (batch.processes_scanned || unknown_pid) ? directory_.pods->view() : no_pods;
  if (!pods) pods = no_pods;

  for (Pid pid : pids) {
    if (refresh(pid, batch.processes_scanned, *pods, map) || gone_.contains(pid)) continue;
    ProcessIdentity unknown;
    unknown.key.pid = pid;
    unknown.name = "unknown";
    map.by_pid[pid] = std::move(unknown);
  }
  for (const auto& [pid, known] : known_) {
    if (known.without_owner && pids.contains(pid)) ++map.without_owner;
  }
  // A batch without GPUs (driver away) says nothing of who is gone.
  if (batch.processes_scanned) {
    std::erase_if(known_, [&](const auto& entry) { return !pids.contains(entry.first); });
    std::erase_if(gone_, [&](Pid pid) { return !pids.contains(pid); });
  }
  return map;
}

}  // namespace gpuledger::identity
