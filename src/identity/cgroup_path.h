// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gpuledger::identity {

// What /proc/<pid>/cgroup says of a process's home. Empty fields: it does not say. All texts are printable ASCII
// but `unit`, which is any clean UTF-8.
struct CgroupHome {
  enum class Verdict {
    kClear,
    kAmbiguous,  // two pods, containers or jobs at once: nobody is named
    kInvalid,    // not one line that the kernel could have written
  };
  Verdict verdict = Verdict::kClear;

  // containerd, crio, docker, podman, nerdctl, cri (a pod's container, runtime not told), container (a bare id), lxc,
  // libvirt-lxc, nspawn, vm, ecs, garden, buildkit; without an id conmon, kata, pod (in the pod, in none of its
  // containers); without a container slurm, systemd, user, host. Empty unless clear.
  std::string runtime;
  std::string container_id;
  std::string pod_uid;       // as Kubernetes prints it; a static pod's is the hash of its manifest
  std::string slurm_job;     // a number or, since Slurm 26.05, a SLUID: "s" and 13 characters
  std::string slurm_step;    // 0, batch, extern, interactive, TBD, 0+1
  std::string slurm_cgroup;  // path of the step's cgroup, only with a SLUID: see ProcReader::read_slurm_job
  std::string unit;          // the systemd service
  std::string user;          // uid whose slice it is

  // The outermost that a tenant could not have made. Users, containers, jobs and services may be allowed to make
  // cgroups of any name below their own, so whatever stands below one of them is a claim and no proof.
  enum class Payer { kHost, kUser, kContainer, kSlurmJob, kPod };
  Payer payer = Payer::kHost;
  bool whole_path = true;  // false: begins with "/..", so that what stands above is not known

  // Of a pod below a container, which pays unless somebody vouches for the pod: the node of a cluster in containers.
  struct Node {
    std::string runtime;
    std::string container_id;
    std::string cgroup;  // its path; empty: not the whole path
  };
  Node node;

  // Whether Kubernetes may be asked for container_id: not for what stands below another payer.
  bool ask_kubernetes = false;
};

// Pure and total. Takes cgroup v1, v2 and both mixed, absolute paths and those that begin with "/.." because the reader
// has a cgroup namespace of its own. The outermost pod wins; nothing below user.slice claims a pod or a job.
// Text beyond 64 KiB is not looked at.
CgroupHome parse_cgroup(std::string_view text);

// Whether a process whose cgroup file this is lives in the cgroup or below it.
bool lives_below(std::string_view text, std::string_view cgroup);

}  // namespace gpuledger::identity
