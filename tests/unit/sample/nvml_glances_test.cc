// SPDX-License-Identifier: Apache-2.0
#include "source_fixture.h"

namespace gpuledger::nvml {
namespace {

using ::testing::SizeIs;

class GlancesTest : public SourceTest {
 protected:
  void glance(int times = 1) {
    for (int i = 0; i < times; ++i) {
      clock_.advance(100ms);
      source().glance();
    }
  }
};

TEST_F(GlancesTest, TellWhenSomebodyCameAndLeft) {
  gpu().compute = {{7, 100, 0, 0}};
  (void)sample(true);
  glance(2);
  gpu().compute = {{7, 100, 0, 0}, {8, 100, 0, 0}};
  glance(3);
  const Nanoseconds came = clock_.now().steady - 200ms;
  gpu().compute = {{7, 100, 0, 0}};
  glance();
  const Nanoseconds left = clock_.now().steady;
  const SampleBatch batch = sample(false, 100ms);
  const ProcessSample* gone = find(batch.devices.at(0), 8);
  ASSERT_NE(gone, nullptr) << "it lived between two batches";
  EXPECT_FALSE(gone->listed);
  EXPECT_EQ(gone->came, came);
  EXPECT_EQ(gone->left, left);
  const ProcessSample* there = find(batch.devices[0], 7);
  ASSERT_NE(there, nullptr);
  EXPECT_TRUE(there->listed);
  EXPECT_FALSE(there->came) << "it was there before";
  glance();
  EXPECT_EQ(find(sample(false, 100ms).devices.at(0), 8), nullptr) << "once is enough";
}

TEST_F(GlancesTest, WhoStaysIsNewOnce) {
  gpu();
  (void)sample(true);
  gpu().compute = {{7, 100, 0, 0}};
  glance(2);
  EXPECT_TRUE(find(sample(false, 100ms).devices.at(0), 7)->came);
  glance(2);
  EXPECT_FALSE(find(sample(false, 100ms).devices.at(0), 7)->came);
}

TEST_F(GlancesTest, ReadTheMonitorsTenTimesASecondAndTheBatchHasTheirMean) {
  gpu().compute = {{7, 100, 0, 0}, {8, 100, 0, 0}};
  (void)sample(true);
  glance();  // the monitors begin
  gpu().activity[2] = 80;
  glance(4);
  gpu().activity[2] = 40;
  glance(4);
  const SampleBatch batch = sample(false, 100ms);
  const DeviceSample& device = batch.devices.at(0);
  ASSERT_GE(device.activity_readings.size(), 8u);
  EXPECT_DOUBLE_EQ(device.activity_readings[1].activity.parts[Activity::kSm]->value, 0.8);
  EXPECT_DOUBLE_EQ(device.activity_readings.back().activity.parts[Activity::kSm]->value, 0.4);
  EXPECT_TRUE(device.activity_readings[1].sm_clock_mhz);
  ASSERT_TRUE(device.activity);
  EXPECT_NEAR(device.activity->parts[Activity::kSm]->value, 0.6, 0.1);
}

TEST_F(GlancesTest, OneAloneNeedsOneReadingAStep) {
  gpu().compute = {{7, 100, 0, 0}};
  (void)sample(true);
  glance(9);
  const SampleBatch batch = sample(false, 100ms);
  EXPECT_THAT(batch.devices.at(0).activity_readings, SizeIs(0));
  EXPECT_TRUE(batch.devices[0].activity);
}

TEST_F(GlancesTest, NobodyGlancedNothingIsHandedOn) {
  gpu().compute = {{7, 100, 0, 0}};
  (void)sample(true);
  const SampleBatch batch = sample();
  EXPECT_THAT(batch.devices.at(0).activity_readings, SizeIs(0));
  EXPECT_THAT(batch.devices[0].power_readings, SizeIs(0));
  EXPECT_FALSE(find(batch.devices[0], 7)->came);
}

TEST_F(GlancesTest, AGpuThatIsGoneIsLeftAlone) {
  gpu().compute = {{7, 100, 0, 0}};
  (void)sample(true);
  source().release();
  glance(3);
  source().resume();
  EXPECT_TRUE(sample(true).health.up);
}

}  // namespace
}  // namespace gpuledger::nvml
