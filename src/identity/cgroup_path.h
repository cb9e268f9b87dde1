// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "identity/batch_scheduler.h"

namespace gpuledger::identity {

// The contents of /proc/<pid>/cgroup. Fields may be empty. All strings are printable ASCII except `unit`, which is
// clean UTF-8.
struct CgroupHome {
  enum class Verdict {
    kClear,
    kAmbiguous,  // two pods, containers or jobs at once: none is named
    kInvalid,    // no line that the kernel could have written
  };
  Verdict verdict = Verdict::kClear;

  // containerd, crio, docker, podman, nerdctl, cri (a pod's container, runtime unknown), container (a bare id), lxc,
  // libvirt-lxc, nspawn, vm, ecs, garden, buildkit; without an id conmon, kata, pod (in the pod, in none of its
  // containers); without a container the scheduler's word (slurm), systemd, user, host. Empty if ambiguous.
  std::string runtime;
  std::string container_id;
  std::string pod_uid;                        // as Kubernetes prints it; for a static pod the hash of its manifest
  const BatchScheduler* scheduler = nullptr;  // of the job
  std::string job;                            // a number or, since Slurm 26.05, a SLUID: "s" and 13 characters
  std::string step;                           // 0, batch, extern, interactive, TBD, 0+1
  std::string step_cgroup;                    // its path, only if the job has no number: see BatchScheduler::number
  std::string unit;                           // the systemd service
  std::string user;                           // uid of the user slice

  // The outermost owner that a tenant cannot have made up. Users, containers, jobs and services may be allowed to make
  // cgroups of any name below their own, so names below one of them are claims, not proof.
  enum class Payer { kHost, kUser, kContainer, kJob, kPod };
  Payer payer = Payer::kHost;
  bool whole_path = true;  // false: begins with "/..", so the outer part is unknown

  // For a pod inside a container (cluster in containers). The container pays unless a source knows the pod.
  struct Node {
    std::string runtime;
    std::string container_id;
    std::string cgroup;  // its path; empty if incomplete
  };
  Node node;

  // Whether to look container_id up in Kubernetes. False below another payer.
  bool ask_kubernetes = false;
};

// Pure and total. Takes cgroup v1, v2 and both mixed, absolute paths and those that begin with "/.." because the reader
// has its own cgroup namespace. The outermost pod wins; pods and jobs below user.slice are ignored. Text beyond 64 KiB
// is ignored.
CgroupHome parse_cgroup(std::string_view text, std::span<const BatchScheduler> schedulers = batch_schedulers());

// Whether the process with this cgroup file is in the cgroup or below it.
bool lives_below(std::string_view text, std::string_view cgroup);

}  // namespace gpuledger::identity
