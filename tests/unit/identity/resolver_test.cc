// SPDX-License-Identifier: Apache-2.0
#include "identity/resolver.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "resolver_fixture.h"

namespace gpuledger::identity {
namespace {

TEST_F(ResolverTest, HostProcess) {
  tree_.add(5, "blender", 100);
  const auto map = resolver_.resolve(batch_of({5}));
  const ProcessIdentity& identity = map->by_pid.at(5);
  EXPECT_EQ(identity.key, (ProcKey{5, 100}));
  EXPECT_EQ(identity.name, "blender");
  EXPECT_EQ(identity.owner.kind, OwnerKind::kHost);
  EXPECT_EQ(map->without_owner, 0u);
}

TEST_F(ResolverTest, PodProcessNamedWhenTheDirectoryKnowsIt) {
  tree_.add(5, "python3", 100, kPodCgroup);
  auto map = resolver_.resolve(batch_of({5}));
  EXPECT_EQ(map->by_pid.at(5).owner.kind, OwnerKind::kPod);
  EXPECT_EQ(map->by_pid.at(5).owner.pod_uid, kUid);
  EXPECT_EQ(map->by_pid.at(5).owner.pod, "");
  EXPECT_EQ(map->without_owner, 1u);
  pods_->name_pod();
  map = resolver_.resolve(batch_of({5}));
  EXPECT_EQ(map->by_pid.at(5).owner.pod, "train-0");
  EXPECT_EQ(map->by_pid.at(5).owner.name_space, "ml");
  EXPECT_EQ(map->by_pid.at(5).owner.container, "pytorch");
  EXPECT_EQ(map->by_pid.at(5).container_id, kId);
  EXPECT_EQ(map->without_owner, 0u);
}

TEST_F(ResolverTest, ReusedPidIsAnotherProcess) {
  tree_.add(5, "old", 100);
  (void)resolver_.resolve(batch_of({5}));
  tree_.remove(5);
  tree_.add(5, "new", 900);
  const auto map = resolver_.resolve(batch_of({5}));
  EXPECT_EQ(map->by_pid.at(5).key.start_ticks, 900u);
  EXPECT_EQ(map->by_pid.at(5).name, "new");
}

TEST_F(ResolverTest, ReuseBetweenScansIsNoticedAndAsksForOne) {
  tree_.add(5, "old", 100);
  (void)resolver_.resolve(batch_of({5}));
  tree_.add(5, "new", 900);
  const auto map = resolver_.resolve(batch_of({5}, false));
  EXPECT_FALSE(map->by_pid.contains(5)) << "what the driver listed was the one who left";
  EXPECT_TRUE(map->rescan_wanted);
  EXPECT_EQ(resolver_.resolve(batch_of({5}))->by_pid.at(5).key, (ProcKey{5, 900}));
}

TEST_F(ResolverTest, ExitIsNoticedBetweenScansAndAsksForOne) {
  tree_.add(5, "job", 100);
  EXPECT_FALSE(resolver_.resolve(batch_of({5}))->rescan_wanted);
  tree_.remove(5);
  const auto map = resolver_.resolve(batch_of({5}, false));
  EXPECT_TRUE(map->rescan_wanted);
  EXPECT_FALSE(map->by_pid.contains(5));
  // The driver goes on listing it for a while: it is not taken for somebody new.
  EXPECT_FALSE(resolver_.resolve(batch_of({5}))->by_pid.contains(5));
  EXPECT_FALSE(resolver_.resolve(batch_of({5}))->rescan_wanted);
}

TEST_F(ResolverTest, NeverSeenAndAlreadyGoneIsKnownByItsPidAlone) {
  const auto map = resolver_.resolve(batch_of({77}));
  EXPECT_EQ(map->by_pid.at(77).key, (ProcKey{77, 0}));
  EXPECT_EQ(map->by_pid.at(77).name, "unknown");
}

TEST_F(ResolverTest, BetweenScansAKnownProcessIsNotReadAgain) {
  tree_.add(5, "before", 100);
  (void)resolver_.resolve(batch_of({5}));
  tree_.write("5/comm", "after\n");
  EXPECT_EQ(resolver_.resolve(batch_of({5}, false))->by_pid.at(5).name, "before");
  EXPECT_EQ(resolver_.resolve(batch_of({5}))->by_pid.at(5).name, "after") << "a process that execs";
}

TEST_F(ResolverTest, AnOldProcessThatExecsIsCalledByItsNewNameWithinAMinute) {
  tree_.add(5, "bash", 100);
  (void)resolver_.resolve(batch_of({5}));
  tree_.write("5/comm", "python3\n");
  SampleBatch later = batch_of({5}, false);
  later.at.steady = std::chrono::seconds(59);
  EXPECT_EQ(resolver_.resolve(later)->by_pid.at(5).name, "bash");
  later.at.steady = std::chrono::seconds(60);
  EXPECT_EQ(resolver_.resolve(later)->by_pid.at(5).name, "python3");
}

TEST_F(ResolverTest, SlurmAndPlainContainer) {
  tree_.add(6, "a.out", 1, "0::/system.slice/slurmstepd.scope/job_9/step_1/user/task_0\n");
  tree_.add(7, "ollama", 2, "0::/docker/" + kId + "\n");
  const auto map = resolver_.resolve(batch_of({6, 7}));
  EXPECT_EQ(map->by_pid.at(6).owner.kind, OwnerKind::kSlurmJob);
  EXPECT_EQ(map->by_pid.at(6).owner.job, "9");
  EXPECT_EQ(map->by_pid.at(6).owner.step, "1");
  EXPECT_EQ(map->by_pid.at(7).owner.kind, OwnerKind::kContainer);
  EXPECT_EQ(map->by_pid.at(7).owner.runtime, "docker");
  EXPECT_EQ(map->by_pid.at(7).owner.container_id, kId);
}

TEST_F(ResolverTest, ContainersHaveNamesWhereTheirDaemonTells) {
  tree_.add(7, "ollama", 2, "0::/docker/" + kId + "\n");
  auto map = resolver_.resolve(batch_of({7}));
  EXPECT_EQ(map->by_pid.at(7).owner.container, "");
  EXPECT_EQ(map->without_owner, 1u);
  EXPECT_GE(containers_->asked, 1) << "the daemon is asked to look again";
  containers_->name(kId, "ollama");
  map = resolver_.resolve(batch_of({7}, false));
  EXPECT_EQ(map->by_pid.at(7).owner.container, "ollama") << "without waiting for a scan";
  EXPECT_EQ(map->without_owner, 0u);
}

const std::string kOtherId(64, 'b');
const std::string kUsersDocker =
    "0::/user.slice/user-1000.slice/user@1000.service/app.slice/docker-" + kId + ".scope\n";

TEST_F(ResolverTest, AUsersCgroupIsNotLookedUpInRootsDocker) {
  tree_.add(7, "miner", 2, kUsersDocker);
  containers_->name(kId, "somebody-elses");
  const auto map = resolver_.resolve(batch_of({7}));
  EXPECT_EQ(map->by_pid.at(7).owner.kind, OwnerKind::kHost);
  EXPECT_EQ(map->by_pid.at(7).owner.user, "1000");
  EXPECT_EQ(map->by_pid.at(7).owner.container, "");
  EXPECT_EQ(map->by_pid.at(7).container_id, "") << "anybody may write an id there";
  EXPECT_EQ(map->without_owner, 0u);
}

TEST_F(ResolverTest, AUsersOwnDaemonNamesHisContainersAndNobodyElses) {
  tree_.add(7, "train", 2, kUsersDocker);
  tree_.add(8, "train", 2, "0::/user.slice/user-1001.slice/user@1001.service/docker-" + kId + ".scope\n");
  tree_.add(9, "train", 2, "0::/../user-1000.slice/docker-" + kId + ".scope\n");
  containers_->uid = "1000";
  containers_->name(kId, "chat");
  const auto map = resolver_.resolve(batch_of({7, 8, 9}));
  EXPECT_EQ(map->by_pid.at(7).owner.kind, OwnerKind::kContainer);
  EXPECT_EQ(map->by_pid.at(7).owner.container, "chat");
  EXPECT_EQ(map->by_pid.at(7).container_id, kId);
  EXPECT_EQ(map->by_pid.at(8).owner.user, "1001");
  EXPECT_EQ(map->by_pid.at(8).owner.kind, OwnerKind::kHost);
  EXPECT_EQ(map->by_pid.at(9).owner.kind, OwnerKind::kHost) << "whose slice it is cannot be told";
}

TEST_F(ResolverTest, ClaimsBelowAContainerAServiceOrAJobAreNotBelieved) {
  pods_->name_pod();
  const std::string pod = "/kubepods/burstable/pod" + kUid + "/" + kId + "\n";
  tree_.add(5, "a", 1, "0::/docker/" + kOtherId + "/system.slice/slurmstepd.scope/job_9/step_1/user/task_0\n");
  tree_.add(6, "b", 1, "0::/docker/" + kOtherId + pod);
  tree_.add(7, "c", 1, "0::/system.slice/mine.service" + pod);
  tree_.add(8, "d", 1, "0::/system.slice/mine.service/slurm/uid_0/job_9/step_1\n");
  tree_.add(9, "e", 1, "0::/system.slice/slurmstepd.scope/job_4/step_1" + pod);
  const auto map = resolver_.resolve(batch_of({5, 6, 7, 8, 9}));
  for (Pid pid : {5, 6}) {
    EXPECT_EQ(map->by_pid.at(pid).owner.kind, OwnerKind::kContainer) << pid;
    EXPECT_EQ(map->by_pid.at(pid).owner.container_id, kOtherId) << pid;
    EXPECT_EQ(map->by_pid.at(pid).container_id, kOtherId) << pid;
  }
  for (Pid pid : {7, 8}) {
    EXPECT_EQ(map->by_pid.at(pid).owner.kind, OwnerKind::kHost) << pid;
    EXPECT_EQ(map->by_pid.at(pid).owner.unit, "mine.service") << pid;
    EXPECT_EQ(map->by_pid.at(pid).container_id, "") << pid;
  }
  EXPECT_EQ(map->by_pid.at(9).owner.kind, OwnerKind::kSlurmJob);
  EXPECT_EQ(map->by_pid.at(9).owner.job, "4");
}

// kind and its like: the exporter is a pod of the cluster that lives in the container.
TEST_F(ResolverTest, APodInAContainerIsBelievedFromWithinAndWhenItIsKnown) {
  const std::string node = "0::/docker/" + kOtherId;
  const std::string pod = "/kubepods/burstable/pod" + kUid + "/" + kId + "\n";
  const std::string other = "/kubepods/burstable/pod99992222-3333-4444-5555-666677778888/" + kId + "\n";
  testing::ProcTree tree;
  tree.write("self/cgroup", node + "/kubepods/besteffort/pod55552222-3333-4444-5555-666677778888/" + kOtherId + "\n");
  tree.add(5, "train", 1, node + pod);
  tree.add(6, "train", 1, node + other);
  tree.add(7, "train", 1, "0::/docker/" + std::string(64, 'c') + pod);
  auto* const pods = new FixedPods;
  NodeDirectory directory;
  directory.pods.reset(pods);
  Resolver resolver(ProcReader(tree.root()), std::move(directory));
  auto map = resolver.resolve(batch_of({5, 6, 7}));
  EXPECT_EQ(map->by_pid.at(5).owner.container_id, kOtherId) << "nobody has told of the pod yet";
  pods->name_pod();
  map = resolver.resolve(batch_of({5, 6, 7}));
  EXPECT_EQ(map->by_pid.at(5).owner.kind, OwnerKind::kPod);
  EXPECT_EQ(map->by_pid.at(5).owner.pod, "train-0");
  EXPECT_EQ(map->by_pid.at(5).container_id, kId);
  EXPECT_EQ(map->by_pid.at(6).owner.container_id, kOtherId) << "no such pod";
  EXPECT_EQ(map->by_pid.at(7).owner.container_id, std::string(64, 'c')) << "another container than ours";
}

// The usual kind: the exporter has a cgroup namespace of its own, so the container that is its node is in no path.
TEST_F(ResolverTest, APodInAContainerSeenFromAPrivateCgroupNamespace) {
  std::string slice_uid = kUid;
  std::replace(slice_uid.begin(), slice_uid.end(), '-', '_');
  const std::string burstable = "kubelet-kubepods-burstable";
  const auto pod = [&](const std::string& uid) {
    return burstable + ".slice/" + burstable + "-pod" + uid + ".slice/cri-containerd-" + kId + ".scope\n";
  };
  testing::ProcTree tree;
  tree.write("self/cgroup", "0::/\n");
  tree.add(5, "train", 1, "0::/../../../" + pod(slice_uid));
  tree.add(6, "batch", 1, "0::/../../../" + pod("99992222_3333_4444_5555_666677778888"));
  // Beside the node, on the machine that runs it: a container, and a pod of another such node.
  tree.add(7, "jupyter", 1, "0::/../../../../../../" + kOtherId + "\n");
  tree.add(8, "train", 1,
           "0::/../../../../../../" + kOtherId + "/kubelet.slice/kubelet-kubepods.slice/" + pod(slice_uid));
  tree.add(9, "exporter", 1, "0::/\n");
  auto* const pods = new FixedPods;
  pods->name_pod();
  NodeDirectory directory;
  directory.pods.reset(pods);
  Resolver resolver(ProcReader(tree.root()), std::move(directory));
  const auto map = resolver.resolve(batch_of({5, 6, 7, 8, 9}));
  EXPECT_EQ(map->by_pid.at(5).owner.kind, OwnerKind::kPod);
  EXPECT_EQ(map->by_pid.at(5).owner.pod, "train-0");
  EXPECT_EQ(map->by_pid.at(5).owner.container, "pytorch");
  EXPECT_EQ(map->by_pid.at(6).owner.kind, OwnerKind::kPod);
  EXPECT_EQ(map->by_pid.at(6).owner.pod, "") << "no source knows it";
  EXPECT_EQ(map->by_pid.at(6).owner.pod_uid, "99992222-3333-4444-5555-666677778888");
  for (Pid pid : {7, 8}) {
    EXPECT_EQ(map->by_pid.at(pid).owner.kind, OwnerKind::kContainer) << pid;
    EXPECT_EQ(map->by_pid.at(pid).owner.container_id, kOtherId) << pid;
  }
  EXPECT_EQ(map->by_pid.at(9).owner.kind, OwnerKind::kHost);
  EXPECT_EQ(map->without_owner, 1u);
}

TEST_F(ResolverTest, NothingNewGivesTheSameMap) {
  tree_.add(5, "blender", 100);
  const auto first = resolver_.resolve(batch_of({5}));
  const auto second = resolver_.resolve(batch_of({5}, false));
  EXPECT_EQ(first, resolver_.resolve(batch_of({5}, false)));
  EXPECT_EQ(first, second);
  EXPECT_NE(first, resolver_.resolve(batch_of({5, 6}, false)));
}

TEST_F(ResolverTest, ContainerAndPodThatDisagreeAreNotNamed) {
  const std::string other = "99992222-3333-4444-5555-666677778888";
  tree_.add(5, "python3", 100, "0::/kubepods/burstable/pod" + other + "/" + kId + "\n");
  pods_->name_pod();
  const auto map = resolver_.resolve(batch_of({5}));
  EXPECT_EQ(map->by_pid.at(5).owner.pod, "");
  EXPECT_EQ(map->by_pid.at(5).owner.pod_uid, other);
  EXPECT_EQ(map->without_owner, 1u);
}

TEST_F(ResolverTest, AmbiguousCgroupsNameNobodyAndCount) {
  const std::string other = "99992222-3333-4444-5555-666677778888";
  tree_.add(5, "python3", 100,
            "2:cpu:/kubepods/burstable/pod" + kUid + "/" + kId + "\n1:memory:/kubepods/burstable/pod" + other + "/" +
                kId + "\n");
  pods_->name_pod();
  const auto map = resolver_.resolve(batch_of({5}));
  EXPECT_EQ(map->by_pid.at(5).owner.kind, OwnerKind::kHost);
  EXPECT_EQ(map->without_owner, 1u);
  EXPECT_EQ(resolver_.health().front().errors.at("cgroup_ambiguous"), 1u);
}

TEST_F(ResolverTest, ServicesAndUsersOfTheHost) {
  tree_.add(5, "Xorg", 100, "0::/system.slice/display-manager.service\n");
  tree_.add(6, "blender", 100, "0::/user.slice/user-1000.slice/session-2.scope\n");
  const auto map = resolver_.resolve(batch_of({5, 6}));
  EXPECT_EQ(map->by_pid.at(5).owner.unit, "display-manager.service");
  EXPECT_EQ(map->by_pid.at(6).owner.user, "1000");
}

TEST_F(ResolverTest, WhoMakesHisCgroupUnreadableStaysWhoHeWas) {
  tree_.add(5, "python3", 100, kPodCgroup);
  pods_->name_pod();
  EXPECT_EQ(resolver_.resolve(batch_of({5}))->by_pid.at(5).owner.pod, "train-0");
  // As a path that is longer than the kernel prints: the file is there and cannot be read.
  std::filesystem::remove(tree_.root() + "/5/cgroup");
  std::filesystem::create_directory(tree_.root() + "/5/cgroup");
  const auto map = resolver_.resolve(batch_of({5}));
  EXPECT_EQ(map->by_pid.at(5).owner.pod, "train-0");
  EXPECT_EQ(map->by_pid.at(5).container_id, kId);
  EXPECT_EQ(resolver_.health().front().errors.at("cgroup_malformed"), 1u);
}

TEST_F(ResolverTest, AFailedReadIsNoEnd) {
  tree_.add(5, "job", 100);
  (void)resolver_.resolve(batch_of({5}));
  std::filesystem::remove(tree_.root() + "/5/stat");
  std::filesystem::create_directory(tree_.root() + "/5/stat");
  for (const bool scanned : {false, true}) {
    const auto map = resolver_.resolve(batch_of({5}, scanned));
    EXPECT_EQ(map->by_pid.at(5).key, (ProcKey{5, 100})) << scanned;
    EXPECT_FALSE(map->rescan_wanted) << scanned;
  }
}

TEST_F(ResolverTest, ADaemonIsNeededWhileAProcessRunsInItsContainers) {
  containers_->works = false;
  tree_.add(5, "blender", 100);
  tree_.add(6, "web", 100, "0::/system.slice/docker-" + kId + ".scope\n");
  tree_.add(7, "pod", 100, kPodCgroup);
  const auto docker = [&] { return resolver_.health().back(); };
  (void)resolver_.resolve(batch_of({5, 7}));
  EXPECT_EQ(docker().source, "docker");
  EXPECT_FALSE(docker().needed);
  EXPECT_FALSE(docker().missed());
  EXPECT_NE(docker().reason.find("not needed"), std::string::npos);
  EXPECT_NE(docker().reason.find("no permission"), std::string::npos);
  (void)resolver_.resolve(batch_of({5, 6}));
  EXPECT_TRUE(docker().missed());
  EXPECT_EQ(docker().reason, "no permission");
  (void)resolver_.resolve(batch_of({5}));
  EXPECT_FALSE(docker().needed);
  containers_->works = true;
  EXPECT_TRUE(docker().up);
  EXPECT_EQ(docker().reason, "");
}

}  // namespace
}  // namespace gpuledger::identity
