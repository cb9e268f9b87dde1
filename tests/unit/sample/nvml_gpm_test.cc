// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "source_fixture.h"

namespace gpuledger::nvml {
namespace {

using ::testing::SizeIs;

class GpmTest : public SourceTest {
 protected:
  // Percent; -1: no number.
  static double part(const std::optional<Activity>& activity, Activity::Part part) {
    if (!activity || !activity->parts[part]) return -1;
    return activity->parts[part]->value * 100;
  }
  static double graphics(const SampleBatch& batch) {
    const auto& activity = batch.devices.at(0).activity;
    return activity && activity->graphics ? activity->graphics->value * 100 : -1;
  }
};

TEST_F(GpmTest, EveryPairOfBatchesGivesTheActivityBetweenThem) {
  gpu();
  EXPECT_FALSE(sample(true).devices[0].activity) << "there is nothing to compare with";
  const SampleBatch batch = sample();
  const auto& activity = batch.devices[0].activity;
  ASSERT_TRUE(activity);
  EXPECT_DOUBLE_EQ(graphics(batch), 90);
  EXPECT_DOUBLE_EQ(part(activity, Activity::kSm), 80);
  EXPECT_DOUBLE_EQ(part(activity, Activity::kOccupancy), 40);
  EXPECT_DOUBLE_EQ(part(activity, Activity::kTensor), 30);
  EXPECT_DOUBLE_EQ(part(activity, Activity::kDram), 20);
  EXPECT_DOUBLE_EQ(part(activity, Activity::kFp64), 0);
  EXPECT_DOUBLE_EQ(part(activity, Activity::kFp32), 10);
  gpu().activity[kGpmSm] = 5;
  EXPECT_DOUBLE_EQ(part(sample().devices[0].activity, Activity::kSm), 5);
  EXPECT_THAT(nvml_.gpm_samples, SizeIs(2));
  EXPECT_EQ(nvml_.called("nvmlGpmSampleAlloc"), 2);
  EXPECT_EQ(nvml_.called("nvmlGpmQueryDeviceSupport"), 1);
}

TEST_F(GpmTest, WhatIsNoNumberIsAbsent) {
  gpu().activity = {{kGpmGraphics, 50}, {kGpmSm, 130}, {kGpmDram, std::nan("")}, {kGpmFp32, -1}};
  sample();
  const SampleBatch batch = sample();
  const auto& activity = batch.devices[0].activity;
  EXPECT_DOUBLE_EQ(part(activity, Activity::kSm), 100) << "a share is at most 1";
  EXPECT_EQ(part(activity, Activity::kDram), -1);
  EXPECT_EQ(part(activity, Activity::kFp32), -1);
  EXPECT_EQ(part(activity, Activity::kTensor), -1) << "a metric this driver does not have";
  EXPECT_TRUE(batch.health.errors.empty());
}

TEST_F(GpmTest, BatchesThatAreTooCloseKeepTheOlderSample) {
  gpu();
  sample();
  nvml_.calls.clear();
  EXPECT_FALSE(sample(false, 60ms).devices[0].activity);
  EXPECT_EQ(nvml_.called("nvmlGpmSampleGet"), 0) << "known beforehand to be of no use";
  const SampleBatch batch = sample(false, 60ms);
  EXPECT_DOUBLE_EQ(graphics(batch), 90) << "120 ms since the sample that was kept";
}

TEST_F(GpmTest, MonitorsThatAreReadOutLateKeepTheOlderSampleToo) {
  gpu();
  nvml_.gpm_refresh = 140ms;
  sample();
  EXPECT_FALSE(sample(false, 110ms).devices[0].activity) << "0 and NaN";
  EXPECT_DOUBLE_EQ(graphics(sample(false, 110ms)), 90) << "220 ms since the sample that was kept";
}

TEST_F(GpmTest, NaNFromSamplesFarApartDoesNotHoldUpTheNext) {
  gpu().activity[kGpmSm] = std::nan("");
  sample();
  SampleBatch batch = sample();
  EXPECT_DOUBLE_EQ(graphics(batch), 90);
  EXPECT_EQ(part(batch.devices[0].activity, Activity::kSm), -1);
  gpu().activity[kGpmSm] = 60;
  nvml_.gpm_refresh = 900ms;
  EXPECT_DOUBLE_EQ(part(sample().devices[0].activity, Activity::kSm), 60);
}

TEST_F(GpmTest, AFailedReadIsCountedAndBridged) {
  gpu();
  sample();
  gpu().fails["nvmlGpmSampleGet"] = kUnknown;
  SampleBatch batch = sample();
  EXPECT_TRUE(batch.devices[0].up);
  EXPECT_FALSE(batch.devices[0].activity);
  EXPECT_EQ(batch.health.errors.at("internal"), 1u);
  gpu().fails.clear();
  EXPECT_DOUBLE_EQ(graphics(sample()), 90);

  nvml_.fails["nvmlGpmMetricsGet"] = kUnknown;
  EXPECT_FALSE(sample().devices[0].activity);
  nvml_.fails.clear();
  batch = sample();
  EXPECT_DOUBLE_EQ(graphics(batch), 90);
  EXPECT_EQ(batch.health.errors.at("internal"), 2u);
}

TEST_F(GpmTest, AGpuWithoutItIsAskedOnceUntilTheDriverIsReopened) {
  gpu().gpm = false;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(sample(true).devices[0].activity);
  EXPECT_EQ(nvml_.called("nvmlGpmQueryDeviceSupport"), 1);
  EXPECT_EQ(nvml_.called("nvmlGpmSampleAlloc"), 0);
  gpu().gpm = true;
  source().release();
  source().resume();
  sample();
  EXPECT_TRUE(sample().devices[0].activity);
}

TEST_F(GpmTest, RefusedInSpiteOfThePromiseIsNotAskedAgain) {
  gpu().fails["nvmlGpmSampleGet"] = kNotSupported;
  for (int i = 0; i < 5; ++i) sample(true);
  EXPECT_EQ(nvml_.called("nvmlGpmSampleGet"), 1);
  EXPECT_THAT(nvml_.gpm_samples, SizeIs(0));
  EXPECT_TRUE(sample().health.errors.empty());
}

TEST_F(GpmTest, SamplesGoBackWithTheDriverAndWithTheGpu) {
  gpu();
  sample();
  source().release();
  EXPECT_THAT(nvml_.gpm_samples, SizeIs(0));
  source().resume();
  sample();
  EXPECT_THAT(nvml_.gpm_samples, SizeIs(2));
  gpu().fails["nvmlGpmSampleGet"] = kGpuIsLost;
  EXPECT_FALSE(sample().devices[0].up);
  EXPECT_THAT(nvml_.gpm_samples, SizeIs(0));
  gpu().fails.clear();
  EXPECT_FALSE(sample().devices[0].activity) << "what was before the loss is no beginning";
  EXPECT_TRUE(sample().devices[0].activity);
}

class GpmMigTest : public GpmTest {
 protected:
  GpmMigTest() {
    gpu().mig_enabled = true;
    gpu().fails["nvmlDeviceGetProcessesUtilizationInfo"] = kNotSupported;
    gpu().fails["nvmlDeviceGetProcessUtilization"] = kNotSupported;
    gpu().fails["nvmlGpmSampleGet"] = kNotSupported;
    add(1, 0, 10);
    add(2, 0, 20);
    add(2, 1, 20);  // two compute instances of one GPU instance
  }
  void add(unsigned gi, unsigned ci, double sm) {
    auto mig = std::make_shared<FakeGpu>();
    mig->uuid = "MIG-" + std::to_string(gi) + "-" + std::to_string(ci);
    mig->gi = gi;
    mig->ci = ci;
    mig->activity[kGpmSm] = sm;
    gpu().migs.push_back(mig);
  }
};

TEST_F(GpmMigTest, EveryGpuInstanceSpeaksForItself) {
  sample(true);
  nvml_.calls.clear();
  const SampleBatch batch = sample();
  const DeviceSample& d = batch.devices[0];
  EXPECT_FALSE(d.activity);
  ASSERT_THAT(d.instance_activity, SizeIs(2));
  EXPECT_DOUBLE_EQ(part(d.instance_activity.at(1), Activity::kSm), 10);
  EXPECT_DOUBLE_EQ(part(d.instance_activity.at(2), Activity::kSm), 20);
  EXPECT_EQ(nvml_.called("nvmlGpmMigSampleGet"), 2);
  EXPECT_EQ(nvml_.called("nvmlGpmSampleGet"), 0) << "said once that it cannot";
  EXPECT_TRUE(batch.health.errors.empty());
}

TEST_F(GpmMigTest, AnInstanceThatIsGoneGivesItsSamplesBack) {
  sample(true);
  EXPECT_THAT(nvml_.gpm_samples, SizeIs(4));
  gpu().migs.erase(gpu().migs.begin());
  const SampleBatch batch = sample(true);
  EXPECT_THAT(batch.devices[0].instance_activity, SizeIs(1));
  EXPECT_THAT(nvml_.gpm_samples, SizeIs(2));
}

TEST_F(GpmMigTest, WithMigOffTheWholeGpuIsAskedAgain) {
  sample(true);
  gpu().mig_enabled = false;
  gpu().fails.clear();
  sample(true);
  const SampleBatch batch = sample();
  EXPECT_TRUE(batch.devices[0].activity);
  EXPECT_THAT(batch.devices[0].instance_activity, SizeIs(0));
}

}  // namespace
}  // namespace gpuledger::nvml
