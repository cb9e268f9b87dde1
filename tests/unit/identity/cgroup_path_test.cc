#include "identity/cgroup_path.h"

#include <gtest/gtest.h>

namespace gpuledger::identity {
namespace {

const std::string kId = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string kUid = "11112222-3333-4444-5555-666677778888";
const std::string kUidUnderscores = "11112222_3333_4444_5555_666677778888";

TEST(ParseCgroup, SystemdDriver) {
  const CgroupHome home = parse_cgroup("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" +
                                       kUidUnderscores + ".slice/cri-containerd-" + kId + ".scope\n");
  EXPECT_EQ(home.pod_uid, kUid);
  EXPECT_EQ(home.container_id, kId);
  EXPECT_EQ(home.runtime, "containerd");
}

TEST(ParseCgroup, CgroupfsDriverInVersionOne) {
  const CgroupHome home = parse_cgroup("12:memory:/kubepods/besteffort/pod" + kUid + "/" + kId +
                                       "\n11:cpu,cpuacct:/kubepods/besteffort/pod" + kUid + "/" + kId + "\n");
  EXPECT_EQ(home.pod_uid, kUid);
  EXPECT_EQ(home.container_id, kId);
}

TEST(ParseCgroup, GuaranteedAndStaticPods) {
  EXPECT_EQ(parse_cgroup("0::/kubepods/pod" + kUid + "/" + kId).pod_uid, kUid);
  EXPECT_EQ(parse_cgroup("0::/kubepods/pod0123456789abcdef0123456789abcdef/" + kId).pod_uid,
            "0123456789abcdef0123456789abcdef");
}

TEST(ParseCgroup, PlainContainers) {
  EXPECT_EQ(parse_cgroup("0::/docker/" + kId).runtime, "docker");
  EXPECT_EQ(parse_cgroup("0::/system.slice/docker-" + kId + ".scope").container_id, kId);
  EXPECT_EQ(parse_cgroup("0::/machine.slice/libpod-" + kId + ".scope").runtime, "podman");
  EXPECT_TRUE(parse_cgroup("0::/docker/" + kId).pod_uid.empty());
}

TEST(ParseCgroup, Slurm) {
  const CgroupHome home = parse_cgroup("0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n");
  EXPECT_EQ(home.slurm_job, "4711");
  EXPECT_EQ(home.slurm_step, "0");
  EXPECT_EQ(parse_cgroup("9:devices:/slurm/uid_1000/job_12/step_batch/task_0").slurm_step, "batch");
  EXPECT_TRUE(parse_cgroup("0::/job_4711/step_0").slurm_job.empty()) << "only below Slurm's own";
}

TEST(ParseCgroup, WhatProvesNothingNamesNobody) {
  for (const std::string& text :
       {std::string(), std::string("0::/\n"), "0::/" + kId, std::string("garbage"),
        std::string("0::/system.slice/sshd.service"), "0::/docker/" + kId.substr(1),
        "0::/kubepods/pod" + kUid.substr(1) + "/x", "0::/user.slice/user-1000.slice/kubepods/pod" + kUid + "/" + kId,
        // As a process with a cgroup namespace of its own sees it.
        "0::/../../user.slice/user-1000.slice/kubepods/pod" + kUid + "/" + kId}) {
    const CgroupHome home = parse_cgroup(text);
    EXPECT_TRUE(home.pod_uid.empty() && home.container_id.empty() && home.slurm_job.empty()) << text;
  }
}

TEST(ParseCgroup, APodMayHaveASystemdOfItsOwn) {
  const CgroupHome home = parse_cgroup("0::/kubepods/pod" + kUid + "/" + kId + "/user.slice/user-0.slice");
  EXPECT_EQ(home.pod_uid, kUid);
  EXPECT_EQ(home.container_id, kId);
}

TEST(ParseCgroup, TheOutermostPodWins) {
  const std::string inner = "99992222-3333-4444-5555-666677778888";
  const CgroupHome home =
      parse_cgroup("0::/kubepods/pod" + kUid + "/" + kId + "/kubepods/pod" + inner + "/" + std::string(64, 'a'));
  EXPECT_EQ(home.pod_uid, kUid);
  EXPECT_EQ(home.container_id, kId);
}

}  // namespace
}  // namespace gpuledger::identity
