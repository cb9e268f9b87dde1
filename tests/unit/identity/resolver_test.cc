#include "identity/resolver.h"

#include <gtest/gtest.h>

#include "support/proc_tree.h"

namespace gpuledger::identity {
namespace {

const std::string kId = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string kUid = "11112222-3333-4444-5555-666677778888";
const std::string kPodCgroup = "0::/kubepods/burstable/pod" + kUid + "/" + kId + "\n";

class FixedPods final : public PodSource {
 public:
  std::shared_ptr<const PodView> view() const override { return view_; }
  SourceHealth health() const override { return {.source = "fixed", .up = true, .reason = {}, .errors = {}}; }
  void name_pod() {
    Pod pod{.name_space = "ml", .name = "train-0", .uid = kUid, .containers = {{kId, "pytorch"}}};
    view_ = std::make_shared<const PodView>(std::vector{std::make_shared<const Pod>(std::move(pod))});
  }

 private:
  std::shared_ptr<const PodView> view_;
};

SampleBatch batch_of(std::initializer_list<Pid> pids, bool scanned = true) {
  SampleBatch batch;
  batch.processes_scanned = scanned;
  DeviceSample device;
  device.up = true;
  for (Pid pid : pids) {
    ProcessSample process;
    process.pid = pid;
    device.processes.push_back(process);
  }
  batch.devices.push_back(device);
  return batch;
}

class ResolverTest : public ::testing::Test {
 protected:
  testing::ProcTree tree_;
  FixedPods* pods_ = new FixedPods;
  Resolver resolver_{ProcReader(tree_.root()), NodeDirectory{.pods = std::unique_ptr<PodSource>(pods_)}};
};

TEST_F(ResolverTest, HostProcess) {
  tree_.add(5, "blender", 100);
  const auto map = resolver_.resolve(batch_of({5}));
  const ProcessIdentity& identity = map.by_pid.at(5);
  EXPECT_EQ(identity.key, (ProcKey{5, 100}));
  EXPECT_EQ(identity.name, "blender");
  EXPECT_EQ(identity.owner.kind, OwnerKind::kHost);
  EXPECT_EQ(map.without_owner, 0u);
}

TEST_F(ResolverTest, PodProcessNamedWhenTheDirectoryKnowsIt) {
  tree_.add(5, "python3", 100, kPodCgroup);
  auto map = resolver_.resolve(batch_of({5}));
  EXPECT_EQ(map.by_pid.at(5).owner.kind, OwnerKind::kPod);
  EXPECT_EQ(map.by_pid.at(5).owner.pod_uid, kUid);
  EXPECT_EQ(map.by_pid.at(5).owner.pod, "");
  EXPECT_EQ(map.without_owner, 1u);
  pods_->name_pod();
  map = resolver_.resolve(batch_of({5}));
  EXPECT_EQ(map.by_pid.at(5).owner.pod, "train-0");
  EXPECT_EQ(map.by_pid.at(5).owner.name_space, "ml");
  EXPECT_EQ(map.by_pid.at(5).owner.container, "pytorch");
  EXPECT_EQ(map.by_pid.at(5).container_id, kId);
  EXPECT_EQ(map.without_owner, 0u);
}

TEST_F(ResolverTest, ReusedPidIsAnotherProcess) {
  tree_.add(5, "old", 100);
  (void)resolver_.resolve(batch_of({5}));
  tree_.remove(5);
  tree_.add(5, "new", 900);
  const auto map = resolver_.resolve(batch_of({5}));
  EXPECT_EQ(map.by_pid.at(5).key.start_ticks, 900u);
  EXPECT_EQ(map.by_pid.at(5).name, "new");
}

TEST_F(ResolverTest, ReuseBetweenScansIsNoticedAndAsksForOne) {
  tree_.add(5, "old", 100);
  (void)resolver_.resolve(batch_of({5}));
  tree_.add(5, "new", 900);
  const auto map = resolver_.resolve(batch_of({5}, false));
  EXPECT_FALSE(map.by_pid.contains(5)) << "what the driver listed was the one who left";
  EXPECT_TRUE(map.rescan_wanted);
  EXPECT_EQ(resolver_.resolve(batch_of({5})).by_pid.at(5).key, (ProcKey{5, 900}));
}

TEST_F(ResolverTest, ExitIsNoticedBetweenScansAndAsksForOne) {
  tree_.add(5, "job", 100);
  EXPECT_FALSE(resolver_.resolve(batch_of({5})).rescan_wanted);
  tree_.remove(5);
  const auto map = resolver_.resolve(batch_of({5}, false));
  EXPECT_TRUE(map.rescan_wanted);
  EXPECT_FALSE(map.by_pid.contains(5));
  // The driver goes on listing it for a while: it is not taken for somebody new.
  EXPECT_FALSE(resolver_.resolve(batch_of({5})).by_pid.contains(5));
  EXPECT_FALSE(resolver_.resolve(batch_of({5})).rescan_wanted);
}

TEST_F(ResolverTest, NeverSeenAndAlreadyGoneIsKnownByItsPidAlone) {
  const auto map = resolver_.resolve(batch_of({77}));
  EXPECT_EQ(map.by_pid.at(77).key, (ProcKey{77, 0}));
  EXPECT_EQ(map.by_pid.at(77).name, "unknown");
}

TEST_F(ResolverTest, BetweenScansAKnownProcessIsNotReadAgain) {
  tree_.add(5, "before", 100);
  (void)resolver_.resolve(batch_of({5}));
  tree_.write("5/comm", "after\n");
  EXPECT_EQ(resolver_.resolve(batch_of({5}, false)).by_pid.at(5).name, "before");
  EXPECT_EQ(resolver_.resolve(batch_of({5})).by_pid.at(5).name, "after") << "a process that execs";
}

TEST_F(ResolverTest, SlurmAndPlainContainer) {
  tree_.add(6, "a.out", 1, "0::/system.slice/slurmstepd.scope/job_9/step_1/user/task_0\n");
  tree_.add(7, "ollama", 2, "0::/docker/" + kId + "\n");
  const auto map = resolver_.resolve(batch_of({6, 7}));
  EXPECT_EQ(map.by_pid.at(6).owner.kind, OwnerKind::kSlurmJob);
  EXPECT_EQ(map.by_pid.at(6).owner.job, "9");
  EXPECT_EQ(map.by_pid.at(6).owner.step, "1");
  EXPECT_EQ(map.by_pid.at(7).owner.kind, OwnerKind::kContainer);
  EXPECT_EQ(map.by_pid.at(7).owner.runtime, "docker");
  EXPECT_EQ(map.by_pid.at(7).owner.container_id, kId);
}

}  // namespace
}  // namespace gpuledger::identity
