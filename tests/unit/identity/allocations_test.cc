// SPDX-License-Identifier: Apache-2.0
#include "identity/allocations.h"

#include <gtest/gtest.h>

namespace gpuledger::identity {
namespace {

const std::string kA = "GPU-aaaaaaaa-2222-3333-4444-555555555555";
const std::string kB = "GPU-bbbbbbbb-2222-3333-4444-555555555555";
const std::string kMig = "MIG-cccccccc-2222-3333-4444-555555555555";

// GPU 0 is whole and has minor 1, GPU 1 is cut into instances and has minor 0.
SampleBatch two_gpus() {
  SampleBatch batch;
  for (uint32_t index = 0; index < 2; ++index) {
    auto description = std::make_shared<DeviceDescription>();
    description->uuid.text = index == 0 ? kA : kB;
    description->index = index;
    description->minor = 1 - index;
    if (index == 1) {
      MigInstance instance;
      instance.uuid = kMig;
      instance.id = {3, 0};
      instance.profile = "1g.24gb";
      description->mig.push_back(instance);
    }
    DeviceSample device;
    device.description = description;
    batch.devices.push_back(device);
  }
  return batch;
}

std::vector<Allocation> join(const std::vector<std::string>& ids, const PodView* pods = nullptr) {
  GrantView view;
  for (const std::string& id : ids) view.grants.push_back({"ml", "train", "main", "nvidia.com/gpu", id});
  return join_allocations(view, pods, two_gpus());
}

TEST(Allocations, EveryWayToNameAGpu) {
  for (const std::string& id : {kA, kA + "::3", std::string("nvidia1"), std::string("nvidia1/vgpu2"),
                                std::string("gpu-1"), std::string("nvidia.com/gpu=0")}) {
    const auto found = join({id});
    ASSERT_EQ(found.size(), 1u) << id;
    EXPECT_EQ(found[0].gpu.text, kA) << id;
    EXPECT_EQ(found[0].mig_uuid, "") << id;
  }
  EXPECT_EQ(join({kA + "::3"})[0].replica, 3u);
}

TEST(Allocations, EveryWayToNameAnInstance) {
  for (const std::string& id :
       {kMig, kMig + "::0", "MIG-" + kB + "/3/0", std::string("nvidia0/gi3"), std::string("gpu-0-mig-1g24gb-19-0")}) {
    const auto found = join({id});
    ASSERT_EQ(found.size(), 1u) << id;
    EXPECT_EQ(found[0].gpu.text, kB) << id;
    EXPECT_EQ(found[0].mig_uuid, kMig) << id;
  }
}

TEST(Allocations, WhatIsNotHereIsLeftOut) {
  EXPECT_TRUE(
      join({"", "all", "tegra", "nvidia7", "GPU-99999999-2222-3333-4444-555555555555", "../../etc/passwd"}).empty());
}

TEST(Allocations, PodsThatEndedHoldNothing) {
  Pod pod;
  pod.name_space = "ml";
  pod.name = "train";
  pod.uid = "u-1";
  pod.finished = true;
  const PodView ended({std::make_shared<const Pod>(pod)});
  EXPECT_TRUE(join({kA}, &ended).empty());
  pod.finished = false;
  const PodView running({std::make_shared<const Pod>(pod)});
  EXPECT_EQ(join({kA}, &running).size(), 1u);
}

TEST(Allocations, HaveTheUidOfThePodWhereItIsKnown) {
  EXPECT_EQ(join({kA})[0].pod_uid, "") << "the kubelet tells only the name";
  Pod pod;
  pod.name_space = "ml";
  pod.name = "train";
  pod.uid = "u-1";
  const PodView pods({std::make_shared<const Pod>(pod)});
  EXPECT_EQ(join({kA}, &pods)[0].pod_uid, "u-1");
}

TEST(Allocations, WhatHamiGaveIsInThePodsAnnotation) {
  EXPECT_TRUE(join({kA + "-0"}).empty()) << "without the annotation nobody knows which GPU it is";
  Pod pod;
  pod.name_space = "ml";
  pod.name = "train";
  pod.uid = "u-1";
  pod.hami_devices = kB + ",NVIDIA,3000,30:;";
  const PodView pods({std::make_shared<const Pod>(pod)});
  const auto found = join({kA + "-0"}, &pods);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].gpu.text, kB);
}

TEST(Allocations, SoleHolder) {
  const GpuUuid gpu{kA};
  EXPECT_NE(sole_holder(join({kA}), gpu), nullptr);
  EXPECT_EQ(sole_holder(join({kA}), GpuUuid{kB}), nullptr);
  EXPECT_EQ(sole_holder(join({kA + "::0"}), gpu), nullptr) << "a replica may have neighbours";
  EXPECT_EQ(sole_holder(join({kMig}), GpuUuid{kB}), nullptr) << "an instance is not the GPU";
}

}  // namespace
}  // namespace gpuledger::identity
