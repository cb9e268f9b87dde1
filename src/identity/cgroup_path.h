#pragma once

#include <string>
#include <string_view>

namespace gpuledger::identity {

// What a cgroup path says of a process's home. Empty fields: it does not say.
struct CgroupHome {
  std::string pod_uid;
  std::string container_id;
  std::string runtime;  // containerd, crio, docker, podman
  std::string slurm_job;
  std::string slurm_step;
};

// Pure and total: the text of /proc/<pid>/cgroup, any hierarchy. Forms read:
//   /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid_>.slice/cri-containerd-<64 hex>.scope
//   /kubepods/burstable/pod<uid>/<64 hex>                      (cgroupfs driver)
//   /docker/<64 hex>, /system.slice/docker-<64 hex>.scope, /machine.slice/libpod-<64 hex>.scope
//   /system.slice/slurmstepd.scope/job_<N>/step_<M>/..., /slurm/uid_<U>/job_<N>/step_<M>
// Nothing below user.slice may claim a pod: users can make such folders themselves.
CgroupHome parse_cgroup(std::string_view text);

}  // namespace gpuledger::identity
