// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
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

// One daemon's names.
struct DaemonNames {
  std::shared_ptr<const ContainerNames> names;  // null: no answer yet
  std::string user;                             // the daemon's uid
};

// All names known at one moment.
struct NameBook {
  std::shared_ptr<const PodView> pods;            // null: no source has answered yet
  std::map<std::string, DaemonNames> containers;  // by runtime
  std::map<std::string, PodTold> inferred;        // by pod uid: names inferred from whole-GPU grants, see resolver.h
  std::string own_cgroup;                         // this program's /proc/self/cgroup
};

enum class Naming {
  kComplete,
  kUnnamed,   // in a pod or container whose name is not known (yet)
  kDisagree,  // container and pod uid belong to different pods: no name is given
};

struct OwnerFound {
  Owner owner;
  Naming naming = Naming::kComplete;
  std::string container_id;  // the process is certainly in it, whatever the owner
};

// The outermost owner that a tenant cannot have made up. A pod in a container (cluster in containers) pays if this
// program runs in the same container and a pod source knows the pod; else the container pays. A container below a
// user's slice pays if that user's own daemon knows it; else the user pays.
OwnerFound owner_of(const CgroupHome& home, const NameBook& names);

// Whether only the daemon of this runtime (docker, podman) can name the container of this process.
bool needs_names(const CgroupHome& home, std::string_view runtime);

}  // namespace gpuledger::identity
