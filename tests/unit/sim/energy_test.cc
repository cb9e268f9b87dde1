// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim_driver.h"

namespace gpuledger::sim_test {
namespace {

using namespace nvml;

class EnergyTest : public SimTest {
 protected:
  unsigned watts(const std::string& processes, const std::string& model = "H200") {
    open("noise: 0\ngpus: [{model: " + model + "}]\nprocesses: [" + processes + "]\n");
    at(5);
    return power(gpu()) / 1000;
  }
};

TEST_F(EnergyTest, TheCounterMovesEvery100Milliseconds) {
  open("gpus: [{model: H200}]\nprocesses: [{pid: 1, gpus: 0, load: gemm}]\n");
  at(1.0);
  const auto before = counter(gpu());
  at(1.099);
  EXPECT_EQ(counter(gpu()), before);
  at(1.1);
  EXPECT_NEAR(static_cast<double>(counter(gpu()) - before), 69'000, 1000);
}

TEST_F(EnergyTest, TheCounterIsTheIntegralOfThePowerSamples) {
  open("gpus: [{model: H200}]\nprocesses: [{pid: 1, gpus: 0, load: {kind: gemm, duty: {period: 0.7, on: 0.3}}}]\n");
  at(1.0);
  const auto before = counter(gpu());
  at(3.0);
  double integral_mj = 0;
  for (const auto& sample : samples(gpu(), 0, wall(1.0))) integral_mj += sample.sampleValue.uiVal * 0.020;
  EXPECT_NEAR(static_cast<double>(counter(gpu()) - before), integral_mj, 1.0);
}

TEST_F(EnergyTest, PowerSamplesAre20MillisecondsApartAnd119) {
  open("gpus: [{model: H200}]\n");
  at(10);
  const auto ring = samples(gpu(), 0);
  ASSERT_EQ(ring.size(), 119u);
  for (size_t i = 1; i < ring.size(); ++i) EXPECT_EQ(ring[i].timeStamp - ring[i - 1].timeStamp, 20'000u);
  EXPECT_EQ(ring.back().timeStamp, wall(10));
}

TEST_F(EnergyTest, WattsOfAnH200AreTheMeasuredOnes) {
  EXPECT_EQ(watts(""), 79u);
  EXPECT_EQ(watts("{pid: 1, gpus: 0}"), 124u);
  EXPECT_EQ(watts("{pid: 1, gpus: 0, load: spin}"), 124u);
  EXPECT_NEAR(watts("{pid: 1, gpus: 0, load: fp32}"), 480, 6);
  EXPECT_NEAR(watts("{pid: 1, gpus: 0, load: copy}"), 450, 10);
  EXPECT_NEAR(watts("{pid: 1, gpus: 0, load: gemm}"), 690, 8);
}

TEST_F(EnergyTest, PowerIsCappedAtTheLimit) {
  EXPECT_EQ(watts("{pid: 1, gpus: 0, load: {kind: gemm, watts: 900}}"), 700u);
  unsigned long long reasons = 0;
  ASSERT_EQ(nv.nvmlDeviceGetCurrentClocksEventReasons(gpu(), &reasons), kSuccess);
  EXPECT_EQ(reasons, 4u);
}

TEST_F(EnergyTest, SharersSplitTheTimeAndWithItTheWatts) {
  // Half of 500 W and half of 0, above 124.
  EXPECT_EQ(watts("{pid: 1, gpus: 0, load: {watts: 500, busy: 100}}, {pid: 2, gpus: 0, load: {watts: 0, busy: 100}}"),
            374u);
  // A weight of 3 to 1.
  EXPECT_EQ(watts("{pid: 1, gpus: 0, load: {watts: 400, busy: 100, weight: 3}},"
                  "{pid: 2, gpus: 0, load: {watts: 0, busy: 100}}"),
            424u);
  // Nobody wants more than there is.
  EXPECT_EQ(watts("{pid: 1, gpus: 0, load: {watts: 400, busy: 25}}, {pid: 2, gpus: 0, load: {watts: 200, busy: 50}}"),
            324u);
}

TEST_F(EnergyTest, PowerUsageIsAMeanOfOneSecondOnlyFromAmpereOn) {
  constexpr char kStep[] = "noise: 0\nprocesses: [{pid: 1, gpus: [0, 1], start: 2, load: {watts: 200, busy: 100}}]\n";
  open(std::string(kStep) + "gpus: [{model: H200}, {model: A100-40GB}]\n");
  at(2.1);
  EXPECT_NEAR(power(gpu(0)), 79'000 + 24'500, 500);
  EXPECT_EQ(power(gpu(1)), 258'000u);
  at(3.0);
  EXPECT_EQ(power(gpu(0)), 324'000u);
}

TEST_F(EnergyTest, ReadingsDoNotDependOnHowOftenOneAsks) {
  constexpr char kBusy[] = R"(
gpus: [{model: H200}]
processes:
  - {pid: 1, gpus: 0, load: {kind: gemm, duty: {period: 3, on: 1, jitter: 1}}}
  - {pid: 100, gpus: 0, repeat: {every: 0.7, lives: 0.3}, load: fp32}
)";
  open(kBusy);
  for (int i = 0; i < 700; ++i) {
    at(i * 0.05);
    counter(gpu());
  }
  at(35);
  const auto often = counter(gpu());
  const auto caught_often = utilization(gpu(), 0);
  open(kBusy);
  at(35);
  EXPECT_EQ(counter(gpu()), often);
  const auto caught_once = utilization(gpu(), 0);
  ASSERT_EQ(caught_once.size(), caught_often.size());
  for (size_t i = 0; i < caught_once.size(); ++i) {
    EXPECT_EQ(caught_once[i].pid, caught_often[i].pid);
    EXPECT_EQ(caught_once[i].smUtil, caught_often[i].smUtil);
  }
  at(20);
  EXPECT_LT(counter(gpu()), often) << "time may go back";
  at(35);
  EXPECT_EQ(counter(gpu()), often);
}

TEST_F(EnergyTest, GpusBeforeVoltaHaveNoCounter) {
  open("gpus: [{model: P100}]\n");
  at(1);
  unsigned long long mj = 0;
  EXPECT_EQ(nv.nvmlDeviceGetTotalEnergyConsumption(gpu(), &mj), kNotSupported);
  EXPECT_GT(power(gpu()), 20'000u);
}

TEST_F(EnergyTest, FieldValuesAnswerOneByOne) {
  open("gpus: [{model: H200, counter_start_joules: 100}]\n");
  at(1);
  FieldValue fields[3] = {};
  fields[0].fieldId = 83;
  fields[1].fieldId = 186;
  fields[2].fieldId = 9999;
  ASSERT_EQ(nv.nvmlDeviceGetFieldValues(gpu(), 3, fields), kSuccess);
  EXPECT_EQ(fields[0].nvmlReturn, kSuccess);
  EXPECT_EQ(fields[0].value.ullVal, counter(gpu()));
  EXPECT_GE(fields[0].value.ullVal, 100'000u);
  EXPECT_EQ(fields[1].nvmlReturn, kSuccess);
  EXPECT_EQ(fields[2].nvmlReturn, kNotSupported);
}

class GpmTest : public SimTest {
 protected:
  double metric(unsigned id, GpmSample from, GpmSample to, Return* result = nullptr) {
    GpmMetricsGet request{};
    request.version = 1;
    request.numMetrics = 1;
    request.sample1 = from;
    request.sample2 = to;
    request.metrics[0].metricId = id;
    EXPECT_EQ(nv.nvmlGpmMetricsGet(&request), kSuccess);
    if (result) *result = request.metrics[0].nvmlReturn;
    return request.metrics[0].value;
  }
};

TEST_F(GpmTest, MeansBetweenTwoSamplesAndNanWhenTheyAreTooClose) {
  open("gpus: [{model: H200}]\nprocesses: [{pid: 1, gpus: 0, load: {kind: gemm, duty: {period: 2, on: 1}}}]\n");
  GpmSample first = nullptr, second = nullptr;
  ASSERT_EQ(nv.nvmlGpmSampleAlloc(&first), kSuccess);
  ASSERT_EQ(nv.nvmlGpmSampleAlloc(&second), kSuccess);
  at(2.0);
  ASSERT_EQ(nv.nvmlGpmSampleGet(gpu(), first), kSuccess);
  at(2.05);
  ASSERT_EQ(nv.nvmlGpmSampleGet(gpu(), second), kSuccess);
  EXPECT_TRUE(std::isnan(metric(5, first, second)));
  at(4.0);
  ASSERT_EQ(nv.nvmlGpmSampleGet(gpu(), second), kSuccess);
  EXPECT_NEAR(metric(5, first, second), 44, 0.5);  // tensor: 88 half of the time
  EXPECT_NEAR(metric(1, first, second), 49.5, 0.5);
  Return result = kSuccess;
  metric(200, first, second, &result);
  EXPECT_EQ(result, kNotSupported);
  EXPECT_EQ(nv.nvmlGpmSampleFree(first), kSuccess);
  EXPECT_EQ(nv.nvmlGpmSampleFree(first), kInvalidArgument);
}

TEST_F(GpmTest, OnlyFromHopperOnAndPerInstance) {
  open(R"(
gpus: [{model: T4}, {model: H100, mig: [{gi: 3, profile: 3g.40gb}, {gi: 9, profile: 1g.10gb}]}]
processes: [{pid: 1, gpus: 1, mig: {gi: 3}, load: fp32}]
)");
  GpmSupport support{1, 7};
  ASSERT_EQ(nv.nvmlGpmQueryDeviceSupport(gpu(0), &support), kSuccess);
  EXPECT_EQ(support.isSupportedDevice, 0u);
  ASSERT_EQ(nv.nvmlGpmQueryDeviceSupport(gpu(1), &support), kSuccess);
  EXPECT_EQ(support.isSupportedDevice, 1u);
  GpmSample busy[2] = {}, idle[2] = {}, whole[2] = {};
  for (int i = 0; i < 2; ++i) {
    at(1 + i);
    for (GpmSample* sample : {&busy[i], &idle[i], &whole[i]}) ASSERT_EQ(nv.nvmlGpmSampleAlloc(sample), kSuccess);
    ASSERT_EQ(nv.nvmlGpmMigSampleGet(gpu(1), 3, busy[i]), kSuccess);
    ASSERT_EQ(nv.nvmlGpmMigSampleGet(gpu(1), 9, idle[i]), kSuccess);
    ASSERT_EQ(nv.nvmlGpmSampleGet(gpu(1), whole[i]), kSuccess);
    EXPECT_EQ(nv.nvmlGpmSampleGet(gpu(0), whole[i]), kNotSupported);
  }
  EXPECT_NEAR(metric(12, busy[0], busy[1]), 96, 0.5);
  EXPECT_EQ(metric(12, idle[0], idle[1]), 0);
  EXPECT_NEAR(metric(12, whole[0], whole[1]), 96 * 3 / 7.0, 0.5);
}

}  // namespace
}  // namespace gpuledger::sim_test
