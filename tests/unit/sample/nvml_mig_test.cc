// SPDX-License-Identifier: Apache-2.0
#include "sample/nvml/nvml_mig.h"
#include "source_fixture.h"

namespace gpuledger::nvml {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

std::optional<DeviceAttributes> slices(unsigned gpu, unsigned compute, unsigned long long mib) {
  DeviceAttributes a{};
  a.gpuInstanceSliceCount = gpu;
  a.computeInstanceSliceCount = compute;
  a.memorySizeMB = mib;
  return a;
}

TEST(MigProfile, FromTheNameOrFromTheAttributes) {
  const Bytes a100{42'949'672'960};   // 40 GiB
  const Bytes h200{150'754'820'096};  // 140.4 GiB
  EXPECT_EQ(mig_profile("NVIDIA H200 MIG 1g.18gb", std::nullopt, h200), "1g.18gb");
  EXPECT_EQ(mig_profile("NVIDIA A100-SXM4-40GB", slices(1, 1, 4864), a100), "1g.5gb");
  EXPECT_EQ(mig_profile("NVIDIA A100-SXM4-40GB", slices(3, 3, 19968), a100), "3g.20gb");
  EXPECT_EQ(mig_profile("NVIDIA A100-SXM4-40GB", slices(3, 1, 19968), a100), "1c.3g.20gb");
  EXPECT_EQ(mig_profile("NVIDIA H200", slices(1, 1, 16384), h200), "1g.18gb");
  EXPECT_EQ(mig_profile("NVIDIA H200", std::nullopt, h200), "");
}

class MigTest : public SourceTest {
 protected:
  MigTest() {
    gpu().mig_enabled = true;
    gpu().fails["nvmlDeviceGetProcessesUtilizationInfo"] = kNotSupported;
    gpu().fails["nvmlDeviceGetProcessUtilization"] = kNotSupported;
    gpu().fails["nvmlDeviceGetUtilizationRates"] = kNotSupported;
    gpu().migs = {make("MIG-b", 2, 0), nullptr, make("MIG-a", 1, 0)};
  }
  static std::shared_ptr<FakeGpu> make(const std::string& uuid, unsigned gi, unsigned ci) {
    auto mig = std::make_shared<FakeGpu>();
    mig->uuid = uuid;
    mig->name = "NVIDIA Fake MIG 1g.18gb";
    mig->gi = gi;
    mig->ci = ci;
    mig->attributes = *slices(1, 1, 16384);
    mig->memory = {0, 500, 0, 480, 20};
    return mig;
  }
};

TEST_F(MigTest, InstancesAreDescribedAndUtilizationIsUnsupported) {
  const SampleBatch batch = sample(true);
  const DeviceSample& d = batch.devices.at(0);
  EXPECT_EQ(d.utilization, UtilizationState::kUnsupported);
  EXPECT_FALSE(d.gpu_utilization);
  EXPECT_EQ(d.description->mig_enabled, true);
  ASSERT_THAT(d.description->mig, SizeIs(2));
  const MigInstance& a = d.description->mig[0];
  EXPECT_EQ(a.uuid, "MIG-a");
  EXPECT_EQ(a.id, (MigId{1, 0}));
  EXPECT_EQ(a.profile, "1g.18gb");
  EXPECT_EQ(a.compute_slices, 1u);
  EXPECT_EQ(a.memory_total, Bytes{500});
  EXPECT_EQ(a.memory_used, Bytes{20});
  EXPECT_TRUE(batch.health.errors.empty()) << "holes are no errors";
}

TEST_F(MigTest, InstanceNumbersComeWithTheEntries) {
  gpu().compute = {{10, 5, 1, 0}, {10, 6, 2, 0}};
  const DeviceSample d = sample(true).devices[0];
  ASSERT_THAT(d.processes, SizeIs(2)) << "one process, two instances";
  EXPECT_EQ(d.processes[0].mig, (MigId{1, 0}));
  EXPECT_EQ(d.processes[1].mig, (MigId{2, 0}));
}

TEST_F(MigTest, WithoutRightsOnTheGpuItsInstancesAreAsked) {
  for (const char* kind : {"Compute", "Graphics", "MPSCompute"}) {
    gpu().fails["nvmlDeviceGet" + std::string(kind) + "RunningProcesses_v3"] = kNoPermission;
  }
  gpu().migs[0]->compute = {{20, 5, kNoInstance, kNoInstance}};
  gpu().migs[2]->compute = {{10, 5, 1, 0}};
  const SampleBatch batch = sample(true);
  const DeviceSample& d = batch.devices[0];
  ASSERT_THAT(d.processes, SizeIs(2));
  EXPECT_EQ(d.processes[0].mig, (MigId{1, 0}));
  EXPECT_EQ(d.processes[1].pid, 20u);
  EXPECT_EQ(d.processes[1].mig, (MigId{2, 0}));
  EXPECT_TRUE(batch.health.errors.empty());
}

TEST_F(MigTest, OneInstanceThatRefusesDoesNotHideTheOther) {
  gpu().migs[0]->fails["nvmlDeviceGetComputeRunningProcesses_v3"] = kNoPermission;
  gpu().migs[2]->compute = {{10, 5, 1, 0}};
  const SampleBatch batch = sample(true);
  EXPECT_THAT(batch.devices[0].processes, SizeIs(1));
  EXPECT_EQ(batch.health.errors.at("permission"), 1u);
}

// Lists ten times a second, as without MIG: a job of half a second is in the next batch.
TEST_F(MigTest, WhoCameAndLeftBetweenTwoScansIsSeenAtAGlance) {
  const auto glance = [&] {
    clock_.advance(100ms);
    return source().glance();
  };
  gpu().compute = {{10, 5, 1, 0}};
  (void)sample(true);
  glance();
  gpu().compute = {{10, 5, 1, 0}, {10, 6, 2, 0}, {20, 6, 2, 0}};
  EXPECT_THAT(glance(), ElementsAre(10, 10, 20)) << "one of them is on two instances";
  const Nanoseconds came = clock_.now().steady;
  gpu().compute = {{10, 5, 1, 0}};
  glance();
  const Nanoseconds left = clock_.now().steady;
  const DeviceSample d = sample(false, 100ms).devices.at(0);
  ASSERT_THAT(d.processes, SizeIs(3));
  EXPECT_EQ(d.processes[0].mig, (MigId{1, 0}));
  EXPECT_TRUE(d.processes[0].listed && !d.processes[0].came && !d.processes[0].left);
  for (const size_t gone : {1, 2}) {
    EXPECT_EQ(d.processes[gone].mig, (MigId{2, 0}));
    EXPECT_FALSE(d.processes[gone].listed);
    EXPECT_EQ(d.processes[gone].came, came);
    EXPECT_EQ(d.processes[gone].left, left);
  }
  EXPECT_TRUE(d.activity_readings.empty()) << "the GPU's monitors do not tell its instances apart";
  EXPECT_THAT(sample(false, 100ms).devices.at(0).processes, SizeIs(1));
}

// The GPU's own lists need rights, or are empty without them: then only scans ask each instance.
TEST_F(MigTest, WithoutRightsOnTheGpuAGlanceHidesNobody) {
  gpu().migs[2]->compute = {{10, 5, 1, 0}};
  (void)sample(true);
  (void)source().glance();
  EXPECT_THAT(sample(false, 100ms).devices.at(0).processes, SizeIs(1));
  for (const char* kind : {"Compute", "Graphics", "MPSCompute"}) {
    gpu().fails["nvmlDeviceGet" + std::string(kind) + "RunningProcesses_v3"] = kNoPermission;
  }
  for (int i = 0; i < 5; ++i) (void)source().glance();
  const SampleBatch batch = sample(false, 100ms);
  EXPECT_THAT(batch.devices.at(0).processes, SizeIs(1));
  EXPECT_TRUE(batch.health.errors.empty()) << "it is no failure";
  EXPECT_LE(nvml_.called("nvmlDeviceGetComputeRunningProcesses_v3"), 6) << "and is not asked again";
}

TEST_F(MigTest, SwitchingMigOffIsSeenAtAScan) {
  sample(true);
  gpu().mig_enabled = false;
  gpu().fails.clear();
  const SampleBatch batch = sample(true);
  EXPECT_EQ(batch.devices[0].description->mig_enabled, false);
  EXPECT_THAT(batch.devices[0].description->mig, SizeIs(0));
  EXPECT_EQ(batch.devices[0].utilization, UtilizationState::kKnown);
}

TEST_F(MigTest, GpusThatHaveNoMigSaySoByAbsence) {
  gpu().fails["nvmlDeviceGetMigMode"] = kNotSupported;
  const SampleBatch batch = sample(true);
  EXPECT_FALSE(batch.devices[0].description->mig_enabled);
  EXPECT_EQ(nvml_.called("nvmlDeviceGetMaxMigDeviceCount"), 0);
}

}  // namespace
}  // namespace gpuledger::nvml
