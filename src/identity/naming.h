// SPDX-License-Identifier: Apache-2.0
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

// What one daemon knows.
struct DaemonNames {
  std::shared_ptr<const ContainerNames> names;  // null: it has not answered yet
  std::string user;                             // uid of who runs it
};

// Who is called what, at one moment: everything that a name can be looked up in.
struct NameBook {
  std::shared_ptr<const PodView> pods;            // null: no source has answered yet
  std::map<std::string, DaemonNames> containers;  // by runtime
  std::map<std::string, PodTold> inferred;        // by pod uid: what the allocation of whole GPUs tells, see resolver.h
  std::string own_cgroup;                         // this program's /proc/self/cgroup
};

enum class Naming {
  kComplete,
  kUnnamed,   // in a pod or container whose name nobody could tell (yet)
  kDisagree,  // container and pod uid belong to different pods: neither name is given
};

struct OwnerFound {
  Owner owner;
  Naming naming = Naming::kComplete;
  std::string container_id;  // in which the process certainly is, whoever the owner is
};

// The outermost that a tenant could not have made. A pod in a container (a cluster in containers) pays if this program
// lives in the same container and a source of pods knows the pod; else the container does. A container below a user's
// slice pays if that user's own daemon knows it; else the user does.
OwnerFound owner_of(const CgroupHome& home, const NameBook& names);

}  // namespace gpuledger::identity
