// SPDX-License-Identifier: Apache-2.0
#include "identity/allocations.h"

#include <algorithm>
#include <set>

#include "identity/device_id.h"

namespace gpuledger::identity {
namespace {

using Device = DeviceDescription;

template <typename Matches>
const Device* find_device(const SampleBatch& batch, Matches matches) {
  for (const DeviceSample& sample : batch.devices) {
    if (sample.description && matches(*sample.description)) return sample.description.get();
  }
  return nullptr;
}

template <typename Matches>
const MigInstance* only_instance(const Device& device, Matches matches) {
  const MigInstance* found = nullptr;
  for (const MigInstance& instance : device.mig) {
    if (!matches(instance)) continue;
    if (found) return nullptr;
    found = &instance;
  }
  return found;
}

bool same_profile(std::string_view nvml, std::string_view dra) {  // "1g.24gb" and "1g24gb"
  std::string bare(nvml);
  std::erase(bare, '.');
  return bare == dra;
}

struct Place {
  const Device* device = nullptr;
  std::string mig_uuid;
};

Place place_by_mig_uuid(const DeviceRef& ref, const SampleBatch& batch) {
  const auto is_it = [&](const MigInstance& instance) { return instance.uuid == ref.uuid; };
  const Device* device =
      find_device(batch, [&](const Device& one) { return std::any_of(one.mig.begin(), one.mig.end(), is_it); });
  return {device, device ? ref.uuid : std::string()};
}

// The instance that the id names by number or profile. Empty if several match: none is better than a wrong one.
std::string instance_of(const DeviceRef& ref, const Device& device) {
  const MigInstance* instance = nullptr;
  if (ref.gpu_instance) {
    instance = only_instance(device, [&](const MigInstance& one) {
      return one.id.gpu_instance == *ref.gpu_instance &&
             (!ref.compute_instance || one.id.compute_instance == *ref.compute_instance);
    });
  } else if (ref.placement) {
    instance = only_instance(device,
                             [&](const MigInstance& one) { return same_profile(one.profile, ref.placement->profile); });
  } else if (ref.mig_index && *ref.mig_index < device.mig.size()) {
    instance = &device.mig[*ref.mig_index];
  }
  return instance ? instance->uuid.str() : std::string();
}

Place place_of(const DeviceRef& ref, const SampleBatch& batch) {
  const Device* device = nullptr;
  switch (ref.kind) {
    case DeviceRef::Kind::kMigUuid: return place_by_mig_uuid(ref, batch);
    case DeviceRef::Kind::kUuid:
      device = find_device(batch, [&](const Device& one) { return one.uuid.text == ref.uuid; });
      break;
    case DeviceRef::Kind::kMinor:
      device = find_device(batch, [&](const Device& one) { return one.minor == ref.number; });
      break;
    case DeviceRef::Kind::kIndex:
      device = find_device(batch, [&](const Device& one) { return one.index == ref.number; });
      break;
    case DeviceRef::Kind::kTegra:
      if (batch.devices.size() == 1) device = batch.devices.front().description.get();
      break;
    case DeviceRef::Kind::kAll:  // no single owner
    case DeviceRef::Kind::kUnknown:
    case DeviceRef::Kind::kInvalid: break;
  }
  return {device, device ? instance_of(ref, *device) : std::string()};
}

// HAMi reports one GPU to the kubelet and gives the one in the pod's annotation. The annotation follows the order of
// containers in the spec, which we do not keep, so it is used only if it is unambiguous.
std::optional<std::string> hami_gpu(const Pod* pod) {
  if (!pod) return std::nullopt;
  std::set<std::string> gpus;
  for (const auto& container : parse_hami_allocation(pod->hami_devices))
    gpus.insert(container.begin(), container.end());
  return gpus.size() == 1 ? std::optional(*gpus.begin()) : std::nullopt;
}

}  // namespace

std::vector<Allocation> join_allocations(const GrantView& grants, const PodView* pods, const SampleBatch& batch) {
  std::vector<Allocation> found;
  for (const DeviceGrant& grant : grants.grants) {
    const Pod* const pod = pods ? pods->by_name(grant.name_space, grant.pod) : nullptr;
    if (pod && pod->finished) continue;
    DeviceRef ref = parse_device_id(grant.device_id);
    if (ref.hami) {
      const auto gpu = hami_gpu(pod);
      if (!gpu) continue;
      ref.uuid = *gpu;
    }
    const Place place = place_of(ref, batch);
    if (!place.device) continue;
    found.push_back({.gpu = place.device->uuid,
                     .gpu_index = place.device->index,
                     .mig_uuid = place.mig_uuid,
                     .name_space = grant.name_space,
                     .pod = grant.pod,
                     .container = grant.container,
                     .resource = grant.resource,
                     .replica = ref.replica,
                     .pod_uid = pod ? Name(pod->uid) : Name()});
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<Allocation> join_slurm_jobs(const std::map<std::string, SlurmJob>& jobs, const SampleBatch& batch) {
  std::vector<Allocation> found;
  for (const auto& [name, job] : jobs) {
    for (const uint32_t number : job.gpus) {
      const Device* device =
          find_device(batch, [&](const Device& one) { return one.minor.value_or(one.index) == number; });
      if (device == nullptr || !device->mig.empty()) continue;
      Allocation allocation;
      allocation.gpu = device->uuid;
      allocation.gpu_index = device->index;
      allocation.job = name;
      found.push_back(std::move(allocation));
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::optional<Allocation> sole_pod(const std::vector<Allocation>& allocations, const GpuUuid& gpu,
                                   const Name& mig_uuid) {
  std::optional<Allocation> holder;
  for (const Allocation& allocation : allocations) {
    if (allocation.gpu != gpu) continue;
    if (allocation.mig_uuid.empty() != mig_uuid.empty()) return std::nullopt;
    if (allocation.mig_uuid != mig_uuid) continue;
    if (!holder) {
      holder = allocation;
    } else if (holder->name_space != allocation.name_space || holder->pod != allocation.pod) {
      return std::nullopt;
    } else if (holder->container != allocation.container) {
      holder->container = Name();
    }
  }
  return holder;
}

const Allocation* sole_holder(const std::vector<Allocation>& allocations, const GpuUuid& gpu) {
  const Allocation* holder = nullptr;
  for (const Allocation& allocation : allocations) {
    if (allocation.gpu != gpu) continue;
    if (holder || !allocation.mig_uuid.empty() || allocation.replica) return nullptr;
    holder = &allocation;
  }
  return holder;
}

}  // namespace gpuledger::identity
