// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "source_fixture.h"

namespace gpuledger::nvml {
namespace {

using ::testing::Optional;

FieldValue whole(unsigned long long value, unsigned scope = 0) {
  FieldValue field{};
  field.scopeId = scope;
  field.valueType = kValueUnsignedLongLong;
  field.value.ullVal = value;
  return field;
}

FieldValue failing(Return result) {
  FieldValue field{};
  field.nvmlReturn = result;
  return field;
}

class VitalsTest : public SourceTest {
 protected:
  static std::optional<uint64_t> vital(const SampleBatch& batch, Vital vital) {
    return batch.devices.at(0).vitals[vital];
  }
};

TEST_F(VitalsTest, WhatIsCheapComesWithEverySampleAndTheRestWithScans) {
  gpu().fields[kFieldPowerViolation] = whole(1000);
  gpu().fields[kFieldThermalViolation] = whole(5);
  gpu().fields[kFieldEccUncorrectedVolatile] = whole(1);
  gpu().clock_reasons = kThrottleSwPowerCap;
  SampleBatch batch = sample(true);
  EXPECT_THAT(vital(batch, Vital::kPowerViolation), Optional(1000));
  EXPECT_THAT(vital(batch, Vital::kThermalViolation), Optional(5));
  EXPECT_THAT(vital(batch, Vital::kEccUncorrectedVolatile), Optional(1));
  EXPECT_THAT(vital(batch, Vital::kMemoryClock), Optional(2619));
  EXPECT_THAT(vital(batch, Vital::kEncoder), Optional(12));
  EXPECT_EQ(vital(batch, Vital::kDecoder), std::nullopt) << "101 % is no reading";
  EXPECT_THAT(vital(batch, Vital::kThrottleReasons), Optional(kThrottleSwPowerCap));
  EXPECT_EQ(vital(batch, Vital::kFan), std::nullopt);

  gpu().fields[kFieldPowerViolation] = whole(2000);
  gpu().fields[kFieldThermalViolation] = whole(6);
  gpu().fields[kFieldEccUncorrectedVolatile] = whole(2);
  batch = sample(false);
  EXPECT_THAT(vital(batch, Vital::kPowerViolation), Optional(2000));
  EXPECT_THAT(vital(batch, Vital::kThermalViolation), Optional(5)) << "as of the scan";
  EXPECT_THAT(vital(batch, Vital::kEccUncorrectedVolatile), Optional(1));
  batch = sample(true);
  EXPECT_THAT(vital(batch, Vital::kThermalViolation), Optional(6));
  EXPECT_THAT(vital(batch, Vital::kEccUncorrectedVolatile), Optional(2));
  EXPECT_EQ(nvml_.called("nvmlDeviceGetFieldValues"), 5) << "one call a sample, one more a scan";
}

TEST_F(VitalsTest, StateAndLink) {
  gpu().performance_state = 2;
  SampleBatch batch = sample(true);
  EXPECT_THAT(vital(batch, Vital::kPerformanceState), Optional(2));
  EXPECT_THAT(vital(batch, Vital::kPcieGeneration), Optional(5));
  EXPECT_THAT(vital(batch, Vital::kPcieWidth), Optional(16));
  EXPECT_EQ(batch.devices.at(0).description->serial, "1653022041234");
  EXPECT_EQ(batch.devices.at(0).description->vbios_version, "96.00.A5.00.01");
  gpu().performance_state = 32;  // unknown
  gpu().link_generation = 0;
  batch = sample(true);
  EXPECT_EQ(vital(batch, Vital::kPerformanceState), std::nullopt);
  EXPECT_EQ(vital(batch, Vital::kPcieGeneration), std::nullopt);
}

TEST_F(VitalsTest, ABoardWithoutANumberHasNone) {
  gpu().serial = "0";
  gpu().vbios = "N/A";
  const SampleBatch batch = sample(true);
  EXPECT_EQ(batch.devices.at(0).description->serial, "");
  EXPECT_EQ(batch.devices.at(0).description->vbios_version, "");
}

TEST_F(VitalsTest, WhatTheGpuDoesNotHaveIsAskedForOnce) {
  gpu().fields[kFieldMemoryTemperature] = whole(41);
  gpu().fields[kFieldPcieReplays] = failing(kInvalidArgument);  // an older driver
  for (int i = 0; i < 3; ++i) sample(true);
  EXPECT_EQ(nvml_.asked_fields[kFieldMemoryTemperature], 3);
  EXPECT_EQ(nvml_.asked_fields[kFieldPcieReplays], 1);
  EXPECT_EQ(nvml_.asked_fields[kFieldRetiredPending], 1);
  EXPECT_EQ(nvml_.called("nvmlDeviceGetFanSpeed"), 1);
  const SampleBatch batch = sample(true);
  EXPECT_EQ(vital(batch, Vital::kRetiredPagesPending), std::nullopt);
  EXPECT_TRUE(batch.health.errors.empty());
}

TEST_F(VitalsTest, ADriverReloadMayHaveBroughtIt) {
  sample(true);
  source().release();
  sample(true);
  gpu().fields[kFieldPcieReplays] = whole(7);
  source().resume();
  EXPECT_THAT(vital(sample(true), Vital::kPcieReplays), Optional(7));
}

TEST_F(VitalsTest, EveryTypeOfValueIsUnderstood) {
  FieldValue value{};
  value.valueType = kValueDouble;
  value.value.dVal = 3.0;
  gpu().fields[kFieldEccCorrectedVolatile] = value;
  value.value.dVal = std::nan("");
  gpu().fields[kFieldEccUncorrectedVolatile] = value;
  value.valueType = kValueSignedLongLong;
  value.value.sllVal = -1;
  gpu().fields[kFieldEccCorrectedAggregate] = value;
  value.valueType = kValueUnsignedInt;
  value.value.ullVal = 0xFFFFFFFF00000004ull;
  gpu().fields[kFieldEccUncorrectedAggregate] = value;
  value.valueType = static_cast<ValueType>(99);
  gpu().fields[kFieldPcieReplays] = value;
  value.valueType = kValueUnsignedLongLong;
  value.value.ullVal = kValueNotAvailable;
  gpu().fields[kFieldPowerViolation] = value;
  // R545: an unsigned int that calls itself a double.
  value.valueType = kValueDouble;
  value.value.ullVal = 44;
  gpu().fields[kFieldMemoryTemperature] = value;
  const SampleBatch batch = sample(true);
  EXPECT_THAT(vital(batch, Vital::kEccCorrectedVolatile), Optional(3));
  EXPECT_EQ(vital(batch, Vital::kEccUncorrectedVolatile), std::nullopt);
  EXPECT_EQ(vital(batch, Vital::kEccCorrectedAggregate), std::nullopt);
  EXPECT_THAT(vital(batch, Vital::kEccUncorrectedAggregate), Optional(4));
  EXPECT_EQ(vital(batch, Vital::kPcieReplays), std::nullopt);
  EXPECT_EQ(vital(batch, Vital::kPowerViolation), std::nullopt);
  EXPECT_THAT(vital(batch, Vital::kMemoryTemperature), Optional(44));
  gpu().fields[kFieldMemoryTemperature] = whole(255);
  EXPECT_EQ(vital(sample(), Vital::kMemoryTemperature), std::nullopt) << "no temperature";
}

TEST_F(VitalsTest, OneFieldThatFailsCostsOnlyItself) {
  gpu().fields[kFieldMemoryTemperature] = failing(kUnknown);
  gpu().fields[kFieldPowerViolation] = whole(1);
  const SampleBatch batch = sample(true);
  EXPECT_TRUE(batch.devices[0].up);
  EXPECT_EQ(vital(batch, Vital::kMemoryTemperature), std::nullopt);
  EXPECT_THAT(vital(batch, Vital::kPowerViolation), Optional(1));
  EXPECT_EQ(batch.health.errors.at("internal"), 1u);
}

TEST_F(VitalsTest, AGpuThatSaysItIsLostIsDown) {
  gpu().fields[kFieldMemoryTemperature] = whole(41);
  sample(true);
  gpu().fields[kFieldMemoryTemperature] = failing(kGpuIsLost);
  const SampleBatch batch = sample();
  EXPECT_FALSE(batch.devices[0].up);
  EXPECT_EQ(vital(batch, Vital::kMemoryClock), std::nullopt);
}

TEST_F(VitalsTest, NobodyShowsThemNobodyReadsThem) {
  options_.readings.vitals = false;
  gpu();
  const SampleBatch batch = sample(true);
  EXPECT_EQ(nvml_.called("nvmlDeviceGetFieldValues"), 0);
  EXPECT_EQ(nvml_.called("nvmlDeviceGetEncoderUtilization"), 0);
  EXPECT_EQ(vital(batch, Vital::kMemoryClock), std::nullopt);
  source().change_readings({.vitals = true, .pcie_traffic = false});
  EXPECT_THAT(vital(sample(true), Vital::kMemoryClock), Optional(2619));
}

TEST_F(VitalsTest, PcieTrafficIsFreeWhereThereAreMonitors) {
  options_.readings.pcie_traffic = true;
  gpu().activity[kGpmPcieSent] = 2;  // MiB
  gpu().activity[kGpmPcieReceived] = 3;
  EXPECT_EQ(sample(true).devices[0].traffic.pcie_sent, std::nullopt) << "no two samples yet";
  const SampleBatch batch = sample(true);
  EXPECT_THAT(batch.devices[0].traffic.pcie_sent, Optional(2 * 1048576.0));
  EXPECT_THAT(batch.devices[0].traffic.pcie_received, Optional(3 * 1048576.0));
  EXPECT_EQ(nvml_.called("nvmlDeviceGetPcieThroughput"), 0) << "21 ms each";
}

TEST_F(VitalsTest, PcieTrafficWithoutMonitorsIsReadAtScansIfSomebodyShowsIt) {
  gpu().gpm = false;
  sample(true);
  EXPECT_EQ(nvml_.called("nvmlDeviceGetPcieThroughput"), 0);
  source().change_readings({.vitals = true, .pcie_traffic = true});
  SampleBatch batch = sample(true);
  EXPECT_THAT(batch.devices[0].traffic.pcie_sent, Optional(5e6));
  EXPECT_THAT(batch.devices[0].traffic.pcie_received, Optional(10e6));
  batch = sample(false);
  EXPECT_THAT(batch.devices[0].traffic.pcie_sent, Optional(5e6)) << "as of the scan";
  EXPECT_EQ(nvml_.called("nvmlDeviceGetPcieThroughput"), 2);
}

TEST_F(VitalsTest, NvlinkTrafficIsWhatTheCountersGainedBetweenScans) {
  gpu().gpm = false;
  gpu().fields[kFieldNvlinkSent] = whole(1000, kScopeAllLinks);
  gpu().fields[kFieldNvlinkReceived] = whole(500, kScopeAllLinks);
  EXPECT_EQ(sample(true).devices[0].traffic.nvlink_sent, std::nullopt);
  gpu().fields[kFieldNvlinkSent] = whole(1100, kScopeAllLinks);
  gpu().fields[kFieldNvlinkReceived] = whole(700, kScopeAllLinks);
  SampleBatch batch = sample(true, 10s);
  EXPECT_THAT(batch.devices[0].traffic.nvlink_sent, Optional(10 * 1024.0));
  EXPECT_THAT(batch.devices[0].traffic.nvlink_received, Optional(20 * 1024.0));
  gpu().fields[kFieldNvlinkSent] = whole(5, kScopeAllLinks);
  EXPECT_EQ(sample(true, 10s).devices[0].traffic.nvlink_sent, std::nullopt) << "the counter began anew";
}

// A counter that fell is believed when the next reading goes on from it; else the series would restart for a glitch.
TEST_F(VitalsTest, ASingleFalseReadingMovesNoCounter) {
  struct Counter {
    FieldId field;
    Vital vital;
  };
  constexpr Counter kCounters[] = {{kFieldPowerViolation, Vital::kPowerViolation},
                                   {kFieldEccCorrectedAggregate, Vital::kEccCorrectedAggregate},
                                   {kFieldNvlinkFlitErrors, Vital::kNvlinkFlitErrors},
                                   {kFieldPcieReplays, Vital::kPcieReplays}};
  for (const auto& [field, counter] : kCounters) gpu().fields[field] = whole(7000);
  sample(true);
  for (const auto& [field, counter] : kCounters) {
    for (const unsigned long long wrong : {0ull, 1ull << 62, 6999ull}) {
      gpu().fields[field] = whole(wrong);
      const SampleBatch batch = sample(true);
      EXPECT_THAT(vital(batch, counter), Optional(7000)) << field << " at " << wrong;
      EXPECT_EQ(batch.devices[0].refused_readings, 1u);
      gpu().fields[field] = whole(7000);
      EXPECT_THAT(vital(sample(true), counter), Optional(7000));
    }
    for (const unsigned long long blank : {~0ull, 1ull << 63}) {
      gpu().fields[field] = whole(blank);
      EXPECT_EQ(vital(sample(true), counter), std::nullopt) << field << " at " << blank;
    }
    gpu().fields[field] = whole(7001);
    EXPECT_THAT(vital(sample(true), counter), Optional(7001));
  }
}

TEST_F(VitalsTest, ACounterThatBeganAnewIsFollowed) {
  gpu().fields[kFieldEccCorrectedVolatile] = whole(7000);
  sample(true);
  gpu().fields[kFieldEccCorrectedVolatile] = whole(0);
  EXPECT_THAT(vital(sample(true), Vital::kEccCorrectedVolatile), Optional(7000));
  EXPECT_THAT(vital(sample(false), Vital::kEccCorrectedVolatile), Optional(7000)) << "no new reading";
  EXPECT_THAT(vital(sample(true), Vital::kEccCorrectedVolatile), Optional(0));
}

TEST_F(VitalsTest, AllOnesOf32BitsAreNoCount) {
  FieldValue value{};
  value.valueType = kValueUnsignedInt;
  value.value.uiVal = ~0u;
  gpu().fields[kFieldPcieReplays] = value;
  EXPECT_EQ(vital(sample(true), Vital::kPcieReplays), std::nullopt);
}

TEST_F(VitalsTest, MonitorsOfLinksThatAreNotThereSayNothing) {
  gpu().activity[kGpmNvlinkSent] = 0;
  gpu().activity[kGpmNvlinkReceived] = 0;
  sample(true);
  EXPECT_EQ(sample().devices[0].traffic.nvlink_sent, std::nullopt);
}

TEST_F(VitalsTest, MemoryIsUsedFreeOrReserved) {
  gpu();
  const DeviceSample device = sample(true).devices[0];
  EXPECT_EQ(device.memory_used, Bytes{300});
  EXPECT_EQ(device.memory_free, Bytes{600});
  EXPECT_EQ(device.memory_reserved, Bytes{100});
}

}  // namespace
}  // namespace gpuledger::nvml
