// SPDX-License-Identifier: Apache-2.0
#include "attribute/books/allocation_tracker.h"

#include <functional>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace gpuledger::attribute {
namespace {

using Part = std::pair<std::string_view, std::string_view>;  // GPU and MIG instance; no instance: the whole GPU

struct Holder {
  std::string_view name_space;
  std::string_view pod;
  std::string_view container;
  std::string_view job;  // of Slurm, and no pod
  friend bool operator==(const Holder&, const Holder&) = default;
};

struct HolderHash {
  size_t operator()(const Holder& holder) const {
    const std::hash<std::string_view> hash;
    return ((hash(holder.name_space) * 31 + hash(holder.pod)) * 31 + hash(holder.container)) * 31 + hash(holder.job);
  }
};

// Sum over some processes of one part of a GPU.
struct Work {
  bool hidden = false;  // behind an MPS server
  bool working = false;

  void add(const ProcessAccount& process) {
    hidden |= !process.sm;
    working |= process.sm && process.sm->value > 0;
    working |= process.idle.evaluated && process.idle.idle_for == Nanoseconds(0);
  }
  void add(const Work& other) {
    hidden |= other.hidden;
    working |= other.working;
  }
};

// Other pods may use the same GPU: replicas are shared, and privileged pods have access to all GPUs. A process that may
// belong to the holder counts as the holder's, so that no pod or job is falsely reported as idle.
struct WorkOfPart {
  bool shared = false;  // allocated to two or more containers or jobs
  Holder first;         // of these
  Work host;            // of the host and of unknown owners
  Work nameless_pods;
  std::unordered_map<Holder, Work, HolderHash> holders;

  void add(const ProcessAccount& process) {
    const Owner& owner = process.identity.owner;
    if (!owner.job.empty()) return holders[{{}, {}, {}, owner.job}].add(process);
    if (owner_kind(owner.kind).never_pod) return;
    if (owner.kind != OwnerKind::kPod) return host.add(process);
    if (owner.pod.empty()) return nameless_pods.add(process);
    holders[{owner.name_space, owner.pod, owner.container, {}}].add(process);
  }
  Work of(const Holder& holder) const {
    Work work = holder.job.empty() ? nameless_pods : Work();
    if (!shared) work.add(host);
    for (const std::string_view container : {holder.container, std::string_view()}) {
      const auto found = holders.find({holder.name_space, holder.pod, container, holder.job});
      if (found != holders.end()) work.add(found->second);
    }
    return work;
  }
};
using WorkByPart = std::map<Part, WorkOfPart>;

Part part_of(const Allocation& allocation) {
  return {allocation.gpu.text, allocation.mig_uuid};
}

Holder holder_of(const Allocation& allocation) {
  return {allocation.name_space, allocation.pod, allocation.container, allocation.job};
}

// All but the uid.
auto grant_of(const Allocation& allocation) {
  return std::tie(allocation.gpu, allocation.gpu_index, allocation.mig_uuid, allocation.name_space, allocation.pod,
                  allocation.container, allocation.resource, allocation.replica, allocation.job);
}

// A pod of the same name is another pod. One whose uid is known only now, or not while the API server is away, is not.
bool is_same(const Allocation& before, const Allocation& now) {
  const bool other_pod = !before.pod_uid.empty() && !now.pod_uid.empty() && before.pod_uid != now.pod_uid;
  return grant_of(before) == grant_of(now) && !other_pod;
}

// Of the allocated parts.
WorkByPart look(const std::vector<Allocation>& allocations, const std::vector<ProcessAccount>& processes) {
  WorkByPart parts;
  for (const Allocation& allocation : allocations) {
    const auto [part, fresh] = parts.try_emplace(part_of(allocation));
    if (fresh) part->second.first = holder_of(allocation);
    part->second.shared |= part->second.first != holder_of(allocation);
  }
  for (const ProcessAccount& process : processes) {
    if (!process.active) continue;
    const auto whole = parts.find({process.gpu.text, {}});
    if (whole != parts.end()) whole->second.add(process);
    if (!process.mig) continue;
    const auto instance = parts.find({process.gpu.text, process.mig->uuid});
    if (instance != parts.end()) instance->second.add(process);
  }
  return parts;
}

struct Seen {
  bool known = false;  // the GPU can tell which process works
  bool working = false;
};

Seen see(const DeviceSample& sample, const Allocation& allocation, const Work& work) {
  Seen seen;
  seen.known = sample.up && sample.utilization == UtilizationState::kKnown && !work.hidden;
  seen.working = work.working;
  if (!seen.known && !allocation.mig_uuid.empty()) {
    // MIG has no utilization; the instance's own monitors tell, where the GPU has them.
    for (const MigInstance& instance : sample.description->mig) {
      const auto activity = sample.instance_activity.find(instance.id.gpu_instance);
      if (allocation.mig_uuid != instance.uuid || activity == sample.instance_activity.end()) continue;
      const auto& busy = activity->second.graphics;
      seen.known = sample.up && busy.has_value();
      seen.working |= busy && busy->value > 0;
    }
  }
  return seen;
}

}  // namespace

std::vector<AllocationAccount> AllocationTracker::advance(const SampleBatch& batch,
                                                          const std::vector<Allocation>& allocations,
                                                          const std::vector<ProcessAccount>& processes,
                                                          Nanoseconds idle_interval) {
  const Nanoseconds now = batch.at.steady;
  std::unordered_map<std::string_view, const DeviceSample*> samples;
  for (const DeviceSample& sample : batch.devices) {
    if (sample.description) samples.try_emplace(sample.description->uuid.text, &sample);
  }
  const WorkByPart parts = look(allocations, processes);
  std::vector<Holding> still;
  still.reserve(allocations.size());
  std::vector<AllocationAccount> accounts;
  accounts.reserve(allocations.size());
  auto before = holdings_.begin();
  for (const Allocation& allocation : allocations) {
    while (before != holdings_.end() && grant_of(before->allocation) < grant_of(allocation)) ++before;
    const bool known_before = before != holdings_.end() && is_same(before->allocation, allocation);
    Holding holding = known_before ? std::move(*before++) : Holding{allocation, now};
    if (!allocation.pod_uid.empty()) holding.allocation.pod_uid = allocation.pod_uid;
    const auto sample = samples.find(allocation.gpu.text);
    const Work work = parts.at(part_of(allocation)).of(holder_of(allocation));
    const Seen seen = sample == samples.end() ? Seen{} : see(*sample->second, allocation, work);
    // Time without samples does not count as idle time, which begins again at the next sample.
    if (seen.working || !seen.known) holding.last_work = now;
    holding.worked = seen.known && (seen.working || holding.worked);
    const Nanoseconds quiet = now - holding.last_work;
    const bool told = seen.known && (holding.worked || quiet / 2 >= idle_interval);
    accounts.push_back({allocation, told ? std::optional(quiet) : std::nullopt});
    still.push_back(std::move(holding));
  }
  holdings_ = std::move(still);
  return accounts;
}

}  // namespace gpuledger::attribute
