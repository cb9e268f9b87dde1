// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <thread>

#include "identity/allocations.h"
#include "identity/device_id.h"
#include "identity/resolver.h"

// The part of the resolver that writes the map.
namespace gpuledger::identity {

std::shared_ptr<const IdentityMap> Resolver::write_map(const SampleBatch& batch) const {
  auto map = std::make_shared<IdentityMap>();
  bool unnamed = false;
  for (const Pid pid : last_pids_) {
    const auto known = known_.find(pid);
    if (known != known_.end()) {
      map->by_pid.emplace_hint(map->by_pid.end(), pid, known->second.identity);
      const bool expected = known->second.identity.owner.kind != OwnerKind::kContainer ||
                            names_.containers.contains(known->second.identity.owner.runtime);
      const bool nameless = known->second.naming != Naming::kComplete && expected;
      const bool ambiguous = known->second.home.verdict == CgroupHome::Verdict::kAmbiguous;
      if (nameless || ambiguous) ++map->without_owner;
      unnamed |= nameless;
    } else if (!gone_.contains(pid)) {
      map->by_pid.emplace_hint(map->by_pid.end(), pid, stranger(pid, batch));
    }
  }
  if (unnamed) ask_for_names();
  map->rescan_wanted = rescan_wanted_;
  map->allocations = allocations_;
  map->slurm_allocations = slurm_allocations_;
  map->slurm_holders = slurm_holders_;
  if (grants_ && !grants_->allocatable.empty()) map->allocatable = grants_->allocatable.size();
  map->pods = pod_facts();
  return map;
}

namespace {

// Nothing: an instance that is not described.
std::optional<Name> instance_of(const ProcessSample& process, const DeviceDescription& device) {
  if (!process.mig) return Name();
  for (const MigInstance& instance : device.mig) {
    if (instance.id == *process.mig) return instance.uuid;
  }
  return std::nullopt;
}

}  // namespace

// It exited before it was read. Its pod can still be inferred if only one pod has the GPU or the MIG instance.
ProcessIdentity Resolver::stranger(Pid pid, const SampleBatch& batch) const {
  ProcessIdentity identity;
  identity.key.pid = pid;
  identity.name = "unknown";
  identity.owner.kind = OwnerKind::kUnknown;
  for (const DeviceSample& device : batch.devices) {
    const auto is_it = [&](const ProcessSample& process) { return process.pid == pid; };
    const auto process = std::find_if(device.processes.begin(), device.processes.end(), is_it);
    if (!device.description || process == device.processes.end()) continue;
    const auto instance = instance_of(*process, *device.description);
    const auto holder = instance ? sole_pod(allocations_, device.description->uuid, *instance) : std::nullopt;
    if (!holder) break;
    identity.owner_inferred = true;
    identity.owner.kind = OwnerKind::kPod;
    identity.owner.name_space = holder->name_space;
    identity.owner.pod = holder->pod;
    identity.owner.container = holder->container;
    const Pod* const pod = names_.pods ? names_.pods->by_name(holder->name_space, holder->pod) : nullptr;
    if (pod) identity.owner.pod_uid = pod->uid;
    break;
  }
  return identity;
}

// Resources that are GPUs by their name, or because an allocation of a GPU has this resource (--gpu-resources).
std::vector<GpuRequest> Resolver::gpu_requests(const Pod& pod) const {
  std::vector<GpuRequest> requests;
  for (const GpuRequest& request : pod.requests) {
    const auto given = [&](const Allocation& allocation) { return allocation.resource == request.resource; };
    if (is_gpu_resource(request.resource) || std::any_of(allocations_.begin(), allocations_.end(), given)) {
      requests.push_back(request);
    }
  }
  std::sort(requests.begin(), requests.end());
  return requests;
}

std::vector<PodFacts> Resolver::pod_facts() const {
  std::set<PodFacts> facts;
  const std::string source = directory_.pods ? directory_.pods->health().source : std::string();
  const auto add = [&](const Pod& pod) {
    // A new pod may have the name of a deleted pod whose process is still ending. Requests have no uid to tell them
    // apart.
    const bool newest = names_.pods->by_name(pod.name_space, pod.name) == &pod;
    facts.insert({pod.name_space, pod.name, pod.uid, source, pod.labels,
                  newest ? gpu_requests(pod) : std::vector<GpuRequest>()});
  };
  for (const auto& [pid, known] : known_) {
    const Owner& owner = known.identity.owner;
    if (owner.kind != OwnerKind::kPod || owner.pod.empty()) continue;
    if (const Pod* pod = names_.pods ? names_.pods->by_uid(owner.pod_uid) : nullptr) {
      add(*pod);
    } else {
      facts.insert({owner.name_space, owner.pod, owner.pod_uid, "pod-resources", {}});
    }
  }
  for (const Allocation& allocation : allocations_) {
    const Pod* pod = names_.pods ? names_.pods->by_name(allocation.name_space, allocation.pod) : nullptr;
    if (pod) add(*pod);
  }
  return {facts.begin(), facts.end()};
}

void Resolver::ask_for_names() const {
  if (directory_.pods) directory_.pods->look_again();
  if (directory_.allocations) directory_.allocations->look_again();
  for (const auto& source : directory_.containers) source->look_again();
}

std::vector<SourceHealth> Resolver::health() const {
  std::vector<SourceHealth> all;
  all.push_back({.source = "proc", .up = view_.warning.empty(), .reason = view_.warning, .errors = errors_});
  if (directory_.pods) {
    for (SourceHealth& one : directory_.pods->healths()) all.push_back(std::move(one));
  }
  if (directory_.allocations) all.push_back(directory_.allocations->health());
  for (const auto& source : directory_.containers) {
    SourceHealth& health = all.emplace_back(source->health());
    health.needed = is_needed(source->runtime());
    if (!health.up && !health.needed) { health.reason.insert(0, kNotNeeded); }
  }
  return all;
}

bool Resolver::is_needed(std::string_view runtime) const {
  return std::any_of(known_.begin(), known_.end(),
                     [&](const auto& entry) { return needs_names(entry.second.home, runtime); });
}

void Resolver::wait_for_names(Nanoseconds patience) const {
  const auto answered = [](const auto& source) {
    if (!source || source->view()) return true;
    const SourceHealth health = source->health();
    return !health.up && !health.undecided;
  };
  const auto all_answered = [&] {
    return answered(directory_.pods) && answered(directory_.allocations) &&
           std::all_of(directory_.containers.begin(), directory_.containers.end(), answered);
  };
  constexpr auto kPause = std::chrono::milliseconds(10);
  for (Nanoseconds waited{0}; waited < patience && !all_answered(); waited += kPause)
    std::this_thread::sleep_for(kPause);
}

}  // namespace gpuledger::identity
