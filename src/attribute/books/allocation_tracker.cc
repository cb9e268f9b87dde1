#include "attribute/books/allocation_tracker.h"

#include <algorithm>

namespace gpuledger::attribute {
namespace {

bool same_part(const Allocation& allocation, const GpuUuid& gpu, const std::optional<MigInstance>& mig) {
  if (allocation.gpu != gpu) return false;
  return allocation.mig_uuid.empty() || (mig && mig->uuid == allocation.mig_uuid);
}

// Others may sit on the same GPU: replicas are shared, and nothing keeps a privileged pod away. Whoever cannot be
// told apart from the holder counts as the holder, so that nobody is accused of wasting what he uses.
bool may_be_holder(const Owner& owner, const Allocation& allocation, bool shared) {
  if (owner.kind != OwnerKind::kPod) return !shared;
  if (owner.pod.empty()) return true;
  if (owner.pod != allocation.pod || owner.name_space != allocation.name_space) return false;
  return owner.container.empty() || owner.container == allocation.container;
}

const DeviceSample* sample_of(const SampleBatch& batch, const GpuUuid& gpu) {
  for (const DeviceSample& sample : batch.devices) {
    if (sample.description && sample.description->uuid == gpu) return &sample;
  }
  return nullptr;
}

struct Seen {
  bool known = false;  // could anybody have been seen working?
  bool working = false;
};

Seen look(const DeviceSample& sample, const Allocation& allocation, bool shared,
          const std::vector<ProcessAccount>& processes) {
  Seen seen;
  seen.known = sample.up && sample.utilization == UtilizationState::kKnown;
  for (const ProcessAccount& process : processes) {
    if (!process.active || !same_part(allocation, process.gpu, process.mig)) continue;
    if (!may_be_holder(process.identity.owner, allocation, shared)) continue;
    if (!process.sm) seen.known = false;  // behind an MPS server
    if (process.sm && process.sm->value > 0) seen.working = true;
    if (process.idle.evaluated && process.idle.idle_for == Nanoseconds(0)) seen.working = true;
  }
  if (!seen.known && !allocation.mig_uuid.empty()) {
    // Utilisation says nothing of MIG; the instance's own monitors do, where the GPU has them.
    for (const MigInstance& instance : sample.description->mig) {
      const auto activity = sample.instance_activity.find(instance.id.gpu_instance);
      if (instance.uuid != allocation.mig_uuid || activity == sample.instance_activity.end()) continue;
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
                                                          const std::vector<ProcessAccount>& processes) {
  const Nanoseconds now = batch.at.steady;
  std::map<Allocation, Nanoseconds> still;
  std::vector<AllocationAccount> accounts;
  accounts.reserve(allocations.size());
  for (const Allocation& allocation : allocations) {
    const bool shared = std::any_of(allocations.begin(), allocations.end(), [&](const Allocation& other) {
      return other.gpu == allocation.gpu && other.mig_uuid == allocation.mig_uuid &&
             (other.pod != allocation.pod || other.name_space != allocation.name_space ||
              other.container != allocation.container);
    });
    const auto before = last_work_.find(allocation);
    Nanoseconds& last = still[allocation] = before == last_work_.end() ? now : before->second;
    const DeviceSample* const sample = sample_of(batch, allocation.gpu);
    const Seen seen = sample ? look(*sample, allocation, shared, processes) : Seen{};
    // A time in which nobody could look is no time of idleness: it counts from when looking is possible again.
    if (seen.working || !seen.known) last = now;
    accounts.push_back({allocation, seen.known ? std::optional(now - last) : std::nullopt});
  }
  last_work_ = std::move(still);
  return accounts;
}

}  // namespace gpuledger::attribute
