// SPDX-License-Identifier: Apache-2.0
#include "sample/nvml/nvml_calm.h"

#include "source_fixture.h"

namespace gpuledger::nvml {
namespace {

// A GPU on which nobody works: 79 W, and whatever is asked, nothing moves.
class CalmTest : public SourceTest {
 protected:
  CalmTest() {
    gpu().busy_percent = 0;
    gpu().power_mw = 79'000;
    for (auto& [metric, percent] : gpu().activity) percent = 0;
  }
  SampleBatch second(unsigned watts = 79, bool scan = false) {
    gpu().energy_mj += watts * 1000;
    return sample(scan);
  }
  // The second after this one would be left out.
  void until_asked() {
    for (int i = 0; i < 10 && asked_in(1) == 0; ++i) continue;
  }
  // How often the GPU was asked who works, over so many seconds.
  int asked_in(int seconds) {
    nvml_.calls.clear();
    for (int i = 0; i < seconds; ++i) second();
    return nvml_.called("nvmlDeviceGetProcessesUtilizationInfo");
  }
};

TEST_F(CalmTest, AGpuOnWhichNobodyWorksIsAskedEveryFiveSeconds) {
  second(79, true);
  asked_in(5);
  EXPECT_EQ(asked_in(20), 4);
  EXPECT_EQ(nvml_.called("nvmlGpmSampleGet"), 4);
  EXPECT_EQ(nvml_.called("nvmlDeviceGetTotalEnergyConsumption"), 20) << "the books go on";
}

TEST_F(CalmTest, WhatIsNotAskedIsAsItWas) {
  gpu().compute = {{17, 100, 0, 0}};
  second(79, true);
  asked_in(2);
  for (int i = 0; i < 10; ++i) {
    const SampleBatch batch = second();
    const DeviceSample& device = batch.devices.at(0);
    EXPECT_EQ(device.utilization, UtilizationState::kKnown);
    EXPECT_EQ(sm(batch, 17), 0);
    ASSERT_TRUE(device.activity && device.activity->graphics) << "a series must not come and go";
    EXPECT_EQ(device.activity->graphics->value, 0);
  }
}

TEST_F(CalmTest, AnySignOfWorkEndsIt) {
  second(79, true);
  const auto asks_after = [&](auto change) {
    asked_in(7);
    until_asked();
    nvml_.calls.clear();
    change();
    second(gpu().power_mw / 1000);
    const int asked = nvml_.called("nvmlDeviceGetProcessesUtilizationInfo");
    gpu().busy_percent = 0;
    gpu().power_mw = 79'000;
    return asked;
  };
  EXPECT_EQ(asks_after([] {}), 0);
  EXPECT_EQ(asks_after([&] { gpu().busy_percent = 1; }), 1);
  EXPECT_EQ(asks_after([&] { gpu().power_mw = 90'000; }), 1) << "the gauge";
  EXPECT_EQ(asks_after([&] { gpu().energy_mj += 40'000; }), 1) << "the counter: a burst that is over already";
  EXPECT_EQ(asks_after([&] { gpu().memory.used += 1 << 20; }), 1) << "somebody came";
}

TEST_F(CalmTest, WhoBeginsToWorkIsSeenWithAllOfItsTime) {
  gpu().compute = {{17, 100, 0, 0}};
  work(17, 50, 1s);  // so that the driver's clock is known
  gpu().busy_percent = 50;
  second(200, true);
  gpu().busy_percent = 0;
  // Four seconds of calm and one of work: the means of utilization and monitors are over all five.
  work(0, 0, 10s);
  asked_in(6);
  until_asked();
  asked_in(3);
  gpu().ring.clear();
  work(17, 100, 1s);
  gpu().busy_percent = 100;
  for (auto& [metric, percent] : gpu().activity) percent = 20;  // of five seconds
  const SampleBatch batch = second(600);
  EXPECT_NEAR(sm(batch, 17), 1, 0.01);
  EXPECT_NEAR(batch.devices[0].activity->parts[Activity::kSm]->value, 4 * 0.2, 1e-9);
}

TEST_F(CalmTest, ScansAskAlways) {
  second(79, true);
  asked_in(7);
  nvml_.calls.clear();
  for (int i = 0; i < 5; ++i) second(79, true);
  EXPECT_EQ(nvml_.called("nvmlDeviceGetProcessesUtilizationInfo"), 5);
}

TEST_F(CalmTest, GpusThatCannotShowCalmAreAlwaysAsked) {
  gpu().fails["nvmlDeviceGetTotalEnergyConsumption"] = kNotSupported;
  second(79, true);
  EXPECT_EQ(asked_in(10), 10);
}

}  // namespace
}  // namespace gpuledger::nvml
