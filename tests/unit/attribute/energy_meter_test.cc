// SPDX-License-Identifier: Apache-2.0
#include "attribute/books/energy_meter.h"

#include <gtest/gtest.h>

#include "support/batch_builder.h"

namespace gpuledger::attribute {
namespace {

using testing::BatchBuilder;

DeviceSample counter_at(int64_t mj) {
  return BatchBuilder(0).gpu(0, mj).device();
}
Timestamp at(double second) {
  return {BatchBuilder::to_ns(second), BatchBuilder::to_ns(second)};
}

TEST(EnergyMeter, FirstLookOnlySetsTheBaseline) {
  EnergyMeter meter;
  EXPECT_FALSE(meter.read(counter_at(5000), at(1), std::nullopt));
}

TEST(EnergyMeter, DifferenceSinceTheLastClose) {
  EnergyMeter meter;
  meter.close(counter_at(5000), at(1));
  const auto step = meter.read(counter_at(5700), at(2), std::nullopt);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->energy, Energy::millijoules(700));
  EXPECT_EQ(step->time, std::chrono::seconds(1));
  EXPECT_FALSE(step->restarted);
}

TEST(EnergyMeter, RestartedCounterGivesWhatItCountedSince) {
  EnergyMeter meter;
  meter.close(counter_at(5'000'000), at(1));
  const auto step = meter.read(counter_at(90'000), at(2), Power::watts(700));
  ASSERT_TRUE(step);
  EXPECT_TRUE(step->restarted);
  EXPECT_EQ(step->energy, Energy::millijoules(90'000));
}

TEST(EnergyMeter, FallenCounterThatCannotBeARestartGivesNothing) {
  EnergyMeter meter;
  meter.close(counter_at(5'000'000), at(1));
  const auto step = meter.read(counter_at(4'000'000), at(2), Power::watts(700));
  ASSERT_TRUE(step);
  EXPECT_TRUE(step->restarted);
  EXPECT_EQ(step->energy, Energy());
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
  const auto step = meter.read(with_power(200), at(2), std::nullopt);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->energy, Energy::millijoules(300'000));
}

TEST(EnergyMeter, MissingReadingLeavesTheStepOpen) {
  EnergyMeter meter;
  meter.close(counter_at(1000), at(0));
  DeviceSample mute = counter_at(0);
  mute.energy_counter.reset();
  EXPECT_FALSE(meter.read(mute, at(1), std::nullopt));
  meter.close(mute, at(1));
  const auto step = meter.read(counter_at(3000), at(2), std::nullopt);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->energy, Energy::millijoules(2000));
  EXPECT_EQ(step->time, std::chrono::seconds(2));
}

}  // namespace
}  // namespace gpuledger::attribute
