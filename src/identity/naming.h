#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "identity/cgroup_path.h"
#include "identity/container_source.h"
#include "identity/pod_view.h"
#include "model/identity.h"

namespace gpuledger::identity {

struct PodTold {
  std::string name_space;
  std::string pod;
  std::string container;
};

// Who is called what, at one moment: everything that a name can be looked up in.
struct NameBook {
  std::shared_ptr<const PodView> pods;                                      // null: no source has answered yet
  std::map<std::string, std::shared_ptr<const ContainerNames>> containers;  // by runtime
  std::map<std::string, PodTold> inferred;  // by pod uid: what the allocation of whole GPUs tells, see resolver.h
};

enum class Naming {
  kComplete,
  kUnnamed,   // in a pod or container whose name nobody could tell (yet)
  kDisagree,  // container and pod uid belong to different pods: neither name is given
};

struct OwnerFound {
  Owner owner;
  Naming naming = Naming::kComplete;
};

// The first that fits of pod, Slurm job, container, host.
OwnerFound owner_of(const CgroupHome& home, const NameBook& names);

}  // namespace gpuledger::identity
