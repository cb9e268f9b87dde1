// SPDX-License-Identifier: Apache-2.0
#include "kubelet_files.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

namespace gpuledger::sim {
namespace {

using nlohmann::json;

json container_entry(const OwnerSpec& owner) {
  return {{"name", owner.container},
          {"ready", true},
          {"started", true},
          {"restartCount", 0},
          {"containerID", "containerd://" + owner.container_id}};
}

void add_pod(const OwnerSpec& owner, std::map<std::string, json>& pods) {
  auto [at, fresh] = pods.try_emplace(owner.pod_uid);
  json& pod = at->second;
  if (fresh) {
    pod = {{"metadata",
            {{"name", owner.pod}, {"namespace", owner.name_space}, {"uid", owner.pod_uid}, {"labels", owner.labels}}},
           {"spec", {{"nodeName", "simulated-node"}, {"containers", json::array()}}},
           {"status", {{"phase", "Running"}, {"containerStatuses", json::array()}}}};
  }
  json& containers = pod["spec"]["containers"];
  const json container = {{"name", owner.container}, {"image", "registry.invalid/" + owner.container}};
  if (std::find(containers.begin(), containers.end(), container) != containers.end()) return;
  containers.push_back(container);
  pod["status"]["containerStatuses"].push_back(container_entry(owner));
}

bool given_now(const AllocationSpec& allocation, Millis now) {
  return allocation.start <= now && now < allocation.end;
}

// Allocations by pod and container, so that the order is stable.
struct Grants {
  using Holder = std::tuple<std::string, std::string, std::string>;         // namespace, pod, container
  std::map<Holder, std::set<std::pair<std::string, std::string>>> devices;  // resource, id
  std::map<unsigned, std::set<Holder>> whole;                               // by GPU: holders of no instance

  static Holder holder(const OwnerSpec& owner) { return {owner.name_space, owner.pod, owner.container}; }
};

void add_grants(const Scenario& scenario, const ProcessSpec& process, Grants& grants) {
  const Grants::Holder holder = Grants::holder(process.owner);
  for (const unsigned index : process.gpus) {
    if (!process.gpu_instance) {
      grants.whole[index].insert(holder);
      continue;
    }
    for (const MigSpec& instance : scenario.gpus[index].instances) {
      if (instance.gpu_instance != *process.gpu_instance || instance.compute_instance != *process.compute_instance) {
        continue;
      }
      grants.devices[holder].insert({"nvidia.com/mig-" + instance.profile, instance.uuid});
    }
  }
}

void add_whole_gpus(const Scenario& scenario, Grants& grants) {
  for (const auto& [index, holders] : grants.whole) {
    unsigned replica = 0;
    for (const Grants::Holder& holder : holders) {
      const std::string& uuid = scenario.gpus[index].uuid;
      if (holders.size() == 1) {
        grants.devices[holder].insert({"nvidia.com/gpu", uuid});
      } else {
        grants.devices[holder].insert({"nvidia.com/gpu.shared", uuid + "::" + std::to_string(replica++)});
      }
    }
  }
}

json offered(const Scenario& scenario, const Grants& grants) {
  json ids = json::array();
  for (unsigned i = 0; i < scenario.gpus.size(); ++i) {
    const GpuSpec& gpu = scenario.gpus[i];
    const auto holders = grants.whole.find(i);
    if (gpu.mig) {
      for (const MigSpec& instance : gpu.instances) ids.push_back(instance.uuid);
    } else if (holders == grants.whole.end() || holders->second.size() < 2) {
      ids.push_back(gpu.uuid);
    } else {
      for (size_t n = 0; n < holders->second.size(); ++n) ids.push_back(gpu.uuid + "::" + std::to_string(n));
    }
  }
  return ids;
}

Grants grants_at(const Scenario& scenario, const std::vector<Life>& lives, Millis now) {
  Grants grants;
  for (const Life& life : lives) {
    if (life.process->owner.kind == OwnerKind::kPod) add_grants(scenario, *life.process, grants);
  }
  for (const AllocationSpec& allocation : scenario.allocations) {
    if (given_now(allocation, now)) grants.whole[allocation.gpu].insert(Grants::holder(allocation.owner));
  }
  add_whole_gpus(scenario, grants);
  return grants;
}

// A container's limits equal its allocation.
void add_limits(const Grants& grants, json& pod) {
  for (json& container : pod["spec"]["containers"]) {
    const auto devices =
        grants.devices.find({pod["metadata"]["namespace"], pod["metadata"]["name"], container["name"]});
    if (devices == grants.devices.end()) continue;
    std::map<std::string, unsigned> counts;
    for (const auto& [resource, id] : devices->second) ++counts[resource];
    for (const auto& [resource, count] : counts) container["resources"]["limits"][resource] = std::to_string(count);
  }
}

}  // namespace

std::string pod_list_text(const Scenario& scenario, const std::vector<Life>& lives, Millis now) {
  std::map<std::string, json> pods;  // by uid, so that the order is stable
  for (const Life& life : lives) {
    if (life.process->owner.kind == OwnerKind::kPod) add_pod(life.process->owner, pods);
  }
  for (const AllocationSpec& allocation : scenario.allocations) {
    if (given_now(allocation, now)) add_pod(allocation.owner, pods);
  }
  json list = {{"kind", "PodList"}, {"apiVersion", "v1"}, {"metadata", json::object()}, {"items", json::array()}};
  const Grants grants = grants_at(scenario, lives, now);
  for (auto& [uid, pod] : pods) add_limits(grants, pod);
  for (auto& [uid, pod] : pods) list["items"].push_back(std::move(pod));
  return list.dump(1) + "\n";
}

std::string pod_resources_text(const Scenario& scenario, const std::vector<Life>& lives, Millis now) {
  const Grants grants = grants_at(scenario, lives, now);
  json document = {{"podResources", json::array()}, {"allocatable", offered(scenario, grants)}};
  for (const auto& [holder, devices] : grants.devices) {
    const auto& [name_space, pod, container] = holder;
    json list = json::array();
    for (const auto& [resource, id] : devices) list.push_back({{"resourceName", resource}, {"deviceIds", {id}}});
    document["podResources"].push_back({{"name", pod},
                                        {"namespace", name_space},
                                        {"containers", {{{"name", container}, {"devices", std::move(list)}}}}});
  }
  return document.dump(1) + "\n";
}

std::string docker_list_text(const std::vector<Life>& lives) {
  std::map<std::string, std::string> names;
  for (const Life& life : lives) {
    const OwnerSpec& owner = life.process->owner;
    if (owner.kind == OwnerKind::kDocker) names[owner.container_id] = owner.container;
  }
  json list = json::array();
  for (const auto& [id, name] : names) list.push_back({{"Id", id}, {"Names", {"/" + name}}});
  return list.dump(1) + "\n";
}

}  // namespace gpuledger::sim
