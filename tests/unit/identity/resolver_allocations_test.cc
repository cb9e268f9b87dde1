// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "resolver_fixture.h"

// What the resolver makes of the kubelet's allocations.
namespace gpuledger::identity {
namespace {

using ResolverAllocations = ResolverTest;

TEST_F(ResolverAllocations, AllocationsAreJoinedWithTheGpusThatAreThere) {
  grants_->grant({{"ml", "train-0", "pytorch", "nvidia.com/gpu", kGpu},
                  {"ml", "elsewhere", "main", "nvidia.com/gpu", "GPU-99999999-2222-3333-4444-555555555555"}});
  pods_->name_pod();
  const auto map = resolver_.resolve(batch_of({}));
  ASSERT_EQ(map->allocations.size(), 1u);
  EXPECT_EQ(map->allocations[0].pod, "train-0");
  EXPECT_EQ(map->allocations[0].gpu.text, kGpu);
  ASSERT_EQ(map->pods.size(), 1u) << "a pod that runs nothing is told of too";
  EXPECT_EQ(map->pods[0].name_source, "fixed");
}

TEST_F(ResolverAllocations, WhoIsGoneBeforeTheFirstLookWasOfThePodThatHoldsTheGpuAlone) {
  pods_->name_pod();
  grants_->grant({{"ml", "train-0", "pytorch", "nvidia.com/gpu", kGpu}});
  (void)resolver_.resolve(batch_of({}));
  const ProcessIdentity inferred = resolver_.resolve(batch_of({77}, false))->by_pid.at(77);
  EXPECT_EQ(inferred.owner.pod_uid, kUid);
  EXPECT_TRUE(inferred.owner_inferred);
  // Two containers of one pod share it: the pod is as certain, which of them is not.
  grants_->grant({{"ml", "train-0", "pytorch", "nvidia.com/gpu.shared", kGpu + "::0"},
                  {"ml", "train-0", "logger", "nvidia.com/gpu.shared", kGpu + "::1"}});
  (void)resolver_.resolve(batch_of({}));
  const Owner pod = resolver_.resolve(batch_of({79}, false))->by_pid.at(79).owner;
  EXPECT_EQ(pod.pod_uid, kUid);
  EXPECT_EQ(pod.container, "");
  grants_->grant({{"ml", "train-0", "pytorch", "nvidia.com/gpu.shared", kGpu + "::0"},
                  {"ml", "other", "main", "nvidia.com/gpu.shared", kGpu + "::1"}});
  (void)resolver_.resolve(batch_of({}));
  EXPECT_EQ(resolver_.resolve(batch_of({78}))->by_pid.at(78).owner.kind, OwnerKind::kUnknown) << "shared: nobody knows";
}

TEST_F(ResolverAllocations, WhoIsGoneBeforeTheFirstLookWasOfThePodThatHoldsTheMigInstanceAlone) {
  const auto uuid = [](uint32_t gi) { return "MIG-11111111-2222-3333-4444-00000000000" + std::to_string(gi); };
  const auto batch_on = [&](std::initializer_list<std::pair<Pid, MigId>> processes) {
    SampleBatch batch = batch_of({}, false);
    auto description = std::make_shared<DeviceDescription>(*batch.devices[0].description);
    for (const uint32_t gi : {1, 2, 3}) {
      description->mig.push_back({.uuid = uuid(gi),
                                  .id = {gi, 0},
                                  .profile = "1g.18gb",
                                  .compute_slices = 1,
                                  .memory_total = {},
                                  .memory_used = {}});
    }
    batch.devices[0].description = description;
    for (const auto& [pid, mig] : processes) {
      ProcessSample& process = batch.devices[0].processes.emplace_back();
      process.pid = pid;
      process.mig = mig;
    }
    return batch;
  };
  pods_->name_pod();
  grants_->grant({{"ml", "train-0", "pytorch", "nvidia.com/mig-1g.18gb", uuid(1)},
                  {"ml", "one", "main", "nvidia.com/mig-1g.18gb.shared", uuid(2) + "::0"},
                  {"ml", "other", "main", "nvidia.com/mig-1g.18gb.shared", uuid(2) + "::1"}});
  (void)resolver_.resolve(batch_on({}));
  const auto map = resolver_.resolve(batch_on({{77, {1, 0}}, {78, {2, 0}}, {79, {3, 0}}, {80, {9, 0}}}));
  EXPECT_EQ(map->by_pid.at(77).owner.pod_uid, kUid);
  EXPECT_TRUE(map->by_pid.at(77).owner_inferred);
  EXPECT_EQ(map->by_pid.at(78).owner.kind, OwnerKind::kUnknown) << "two pods hold the instance";
  EXPECT_EQ(map->by_pid.at(79).owner.kind, OwnerKind::kUnknown) << "nobody holds it";
  EXPECT_EQ(map->by_pid.at(80).owner.kind, OwnerKind::kUnknown) << "an instance that nobody described";
  // One of them is of an instance that could not be found: it may be any.
  grants_->grant({{"ml", "train-0", "pytorch", "nvidia.com/mig-1g.18gb", uuid(1)},
                  {"ml", "other", "main", "nvidia.com/mig-1g.18gb", kGpu}});
  (void)resolver_.resolve(batch_on({}));
  EXPECT_EQ(resolver_.resolve(batch_on({{81, {1, 0}}}))->by_pid.at(81).owner.kind, OwnerKind::kUnknown);
}

// Ten times a second somebody glances at the lists; a job of 0.4 s is over before the batch that names it.
TEST_F(ResolverAllocations, WhoWasMetAtAGlanceIsHandedOnThoughItIsOver) {
  pods_->name_pod();
  (void)resolver_.resolve(batch_of({}));
  tree_.add(5, "python3", 100, kPodCgroup);
  resolver_.meet_early({5}, Nanoseconds(1));
  tree_.remove(5);
  resolver_.meet_early({5}, Nanoseconds(2));
  const auto map = resolver_.resolve(batch_of({5}));
  EXPECT_EQ(map->by_pid.at(5).owner.pod_uid, kUid);
  EXPECT_EQ(map->by_pid.at(5).key.start_ticks, 100u);
  EXPECT_FALSE(map->by_pid.at(5).owner_inferred);
  // From then on it is gone like anybody else.
  EXPECT_FALSE(resolver_.resolve(batch_of({5}))->by_pid.contains(5));
}

TEST_F(ResolverAllocations, WithoutAPodSourceTheAllocationOfAWholeGpuNamesThePod) {
  tree_.add(5, "python3", 100, kPodCgroup);
  grants_->grant({{"ml", "train-0", "pytorch", "nvidia.com/gpu", kGpu}});
  auto map = resolver_.resolve(batch_of({5}));
  EXPECT_EQ(map->by_pid.at(5).owner.pod, "train-0");
  EXPECT_EQ(map->by_pid.at(5).owner.pod_uid, kUid);
  ASSERT_EQ(map->pods.size(), 1u);
  EXPECT_EQ(map->pods[0].name_source, "pod-resources");
  // A second pod turns up on the GPU that was not given to it: it is not called by the first one's name.
  const std::string other = "99992222-3333-4444-5555-666677778888";
  tree_.add(6, "intruder", 100, "0::/kubepods/burstable/pod" + other + "/" + kId + "\n");
  map = resolver_.resolve(batch_of({5, 6}));
  EXPECT_EQ(map->by_pid.at(5).owner.pod, "train-0");
  EXPECT_EQ(map->by_pid.at(6).owner.pod, "");
}

TEST_F(ResolverAllocations, TwoPodsOnOneGpuAreNeverInferred) {
  const std::string other = "99992222-3333-4444-5555-666677778888";
  tree_.add(5, "python3", 100, kPodCgroup);
  tree_.add(6, "python3", 100, "0::/kubepods/burstable/pod" + other + "/" + kId + "\n");
  grants_->grant({{"ml", "train-0", "pytorch", "nvidia.com/gpu", kGpu}});
  const auto map = resolver_.resolve(batch_of({5, 6}));
  EXPECT_EQ(map->by_pid.at(5).owner.pod, "");
  EXPECT_EQ(map->by_pid.at(6).owner.pod, "");
}

}  // namespace
}  // namespace gpuledger::identity
