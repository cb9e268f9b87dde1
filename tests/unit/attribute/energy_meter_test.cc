// SPDX-License-Identifier: Apache-2.0
#include "attribute/books/energy_meter.h"

#include <gtest/gtest.h>

#include "model/most_power.h"
#include "support/batch_builder.h"

namespace gpuledger::attribute {
namespace {

using testing::BatchBuilder;

constexpr Power kMost = Power::milliwatts(1'400'000);

DeviceSample counter_at(int64_t mj) {
  return BatchBuilder(0).gpu(0, mj).device();
}
Timestamp at(double second) {
  return {BatchBuilder::to_ns(second), BatchBuilder::to_ns(second)};
}

TEST(EnergyMeter, FirstLookOnlySetsTheBaseline) {
  EnergyMeter meter;
  EXPECT_FALSE(meter.read(counter_at(5000), at(1), kMost));
}

TEST(EnergyMeter, DifferenceSinceTheLastClose) {
  EnergyMeter meter;
  meter.close(counter_at(5000), at(1));
  const auto step = meter.read(counter_at(5700), at(2), kMost);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->energy, Energy::millijoules(700));
  EXPECT_EQ(step->time, std::chrono::seconds(1));
  EXPECT_FALSE(step->restarted);
}

TEST(EnergyMeter, AThirdReadingMakesANewCourse) {
  EnergyMeter meter;
  meter.close(counter_at(5'000'000), at(1));
  for (const double second : {2.0, 3.0}) {
    const DeviceSample sample = counter_at(static_cast<int64_t>(second * 100'000));
    EXPECT_FALSE(meter.read(sample, at(second), kMost));
    EXPECT_TRUE(meter.refused());
    EXPECT_FALSE(meter.close(sample, at(second)));
  }
  const auto step = meter.read(counter_at(400'000), at(4), kMost);
  ASSERT_TRUE(step);
  EXPECT_FALSE(meter.refused());
  EXPECT_TRUE(step->restarted);
  EXPECT_EQ(step->energy, Energy::millijoules(400'000)) << "all since the reset";
  EXPECT_EQ(step->time, std::chrono::seconds(3));
}

TEST(EnergyMeter, AFallThatIsNoResetGivesWhatWasCountedSince) {
  EnergyMeter meter;
  meter.close(counter_at(50'000'000), at(1));
  meter.read(counter_at(40'000'000), at(2), kMost);
  meter.read(counter_at(40'100'000), at(3), kMost);
  const auto step = meter.read(counter_at(40'300'000), at(4), kMost);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->energy, Energy::millijoules(300'000));
}

TEST(EnergyMeter, AValueThatStandsStillIsNoCourse) {
  EnergyMeter meter;
  meter.close(counter_at(5'000'000), at(1));
  for (int second = 2; second < 100; ++second) EXPECT_FALSE(meter.read(counter_at(0), at(second), kMost));
  const auto step = meter.read(counter_at(5'900'000), at(100), kMost);
  ASSERT_TRUE(step);
  EXPECT_FALSE(step->restarted);
  EXPECT_EQ(step->energy, Energy::millijoules(900'000));
}

// A clock that was wrong by fifty years: the bound does not overflow.
TEST(EnergyMeter, AVeryLongStepIsStillBounded) {
  EnergyMeter meter;
  meter.close(counter_at(0), at(0));
  const double later = 50.0 * 365 * 86400;
  EXPECT_TRUE(meter.read(counter_at(1'000'000), at(later), kMostOfAnyGpu));
  EXPECT_FALSE(meter.read(counter_at(kMostMillijoules), at(10), kMostOfAnyGpu));
}

TEST(EnergyMeter, WithoutCounterPowerIsIntegrated) {
  const auto with_power = [](double watts) {
    BatchBuilder builder(0);
    builder.gpu(0, 0);
    builder.description().energy_source = EnergySource::kPowerIntegral;
    builder.device().energy_counter.reset();
    builder.device().power = Power::watts(watts);
    return builder.device();
  };
  EnergyMeter meter;
  meter.close(with_power(100), at(0));
  const auto step = meter.read(with_power(200), at(2), kMost);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->energy, Energy::millijoules(300'000));
}

TEST(EnergyMeter, MissingReadingLeavesTheStepOpen) {
  EnergyMeter meter;
  meter.close(counter_at(1000), at(0));
  DeviceSample mute = counter_at(0);
  mute.energy_counter.reset();
  EXPECT_FALSE(meter.read(mute, at(1), kMost));
  meter.close(mute, at(1));
  const auto step = meter.read(counter_at(3000), at(2), kMost);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->energy, Energy::millijoules(2000));
  EXPECT_EQ(step->time, std::chrono::seconds(2));
}

}  // namespace
}  // namespace gpuledger::attribute
