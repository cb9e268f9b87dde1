// SPDX-License-Identifier: Apache-2.0
#include "sample/impossible_power.h"

#include <gtest/gtest.h>

#include "model/most_power.h"
#include "support/batch_builder.h"

namespace gpuledger {
namespace {

constexpr Power kAllOnes = Power::milliwatts(0xffffffff);

DeviceSample after(std::optional<Power> limit, std::optional<Power> power, std::vector<PowerReading> readings = {}) {
  testing::BatchBuilder builder(0);
  builder.gpu(0, 0);
  builder.description().power_limit = limit;
  builder.device().power = power;
  builder.device().power_readings = std::move(readings);
  SampleBatch batch = builder.batch();
  leave_out_impossible_power(batch);
  return batch.devices[0];
}

TEST(ImpossiblePower, WhatNoGpuWithThatLimitDrawsIsNoReading) {
  for (const Power wrong : {kAllOnes, Power::watts(1401), Power::milliwatts(-1)}) {
    const DeviceSample device = after(Power::watts(700), wrong);
    EXPECT_FALSE(device.power);
    EXPECT_EQ(device.refused_readings, 1u);
  }
  const DeviceSample peak = after(Power::watts(700), Power::watts(1000));
  EXPECT_EQ(peak.power, Power::watts(1000));
  EXPECT_EQ(peak.refused_readings, 0u);
}

TEST(ImpossiblePower, WithoutALimitThereIsABoundToo) {
  for (const std::optional<Power>& limit : {std::optional<Power>(), std::optional(kAllOnes), std::optional(Power())}) {
    EXPECT_FALSE(after(limit, kAllOnes).power);
    EXPECT_EQ(after(limit, Power::watts(2000)).power, Power::watts(2000));
  }
}

TEST(ImpossiblePower, OfTheDriversSamplesTheOthersStay) {
  const DeviceSample device =
      after(Power::watts(700), Power::watts(400),
            {{Nanoseconds(1), Power::watts(390)}, {Nanoseconds(2), kAllOnes}, {Nanoseconds(3), Power::watts(410)}});
  ASSERT_EQ(device.power_readings.size(), 2u);
  EXPECT_EQ(device.power_readings[1].power, Power::watts(410));
  EXPECT_EQ(device.power, Power::watts(400));
  EXPECT_EQ(device.refused_readings, 1u);
}

}  // namespace
}  // namespace gpuledger
