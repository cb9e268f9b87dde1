// SPDX-License-Identifier: Apache-2.0
#include "sim_driver.h"

namespace gpuledger::sim_test {
namespace {

using namespace nvml;

class EventsTest : public SimTest {};

TEST_F(EventsTest, ALostGpuAnswersNothingUntilItIsBack) {
  open(R"(
gpus: [{model: T4}, {model: T4}]
events:
  - {at: 5, do: gpu_lost, gpu: 0}
  - {at: 9, do: gpu_back, gpu: 0}
)");
  const Device first = gpu(0), second = gpu(1);
  at(5);
  unsigned long long mj = 0;
  Device device = nullptr;
  unsigned count = 0;
  EXPECT_EQ(nv.nvmlDeviceGetTotalEnergyConsumption(first, &mj), kGpuIsLost);
  EXPECT_EQ(nv.nvmlDeviceGetHandleByIndex_v2(0, &device), kGpuIsLost);
  EXPECT_EQ(nv.nvmlDeviceGetTotalEnergyConsumption(second, &mj), kSuccess);
  ASSERT_EQ(nv.nvmlDeviceGetCount_v2(&count), kSuccess);
  EXPECT_EQ(count, 2u);
  at(9);
  EXPECT_EQ(nv.nvmlDeviceGetTotalEnergyConsumption(first, &mj), kSuccess);
}

TEST_F(EventsTest, AFieldTakesItsValueIfTheGpuHasIt) {
  open(R"(
gpus: [{model: A100-80GB, temperature: 40}, {model: RTX-4090}]
events:
  - {at: 5, do: field, gpu: 0, field: 4, value: 2}
  - {at: 5, do: field, gpu: 1, field: 4, value: 2}
)");
  const auto read = [&](unsigned index, unsigned id, unsigned scope = 0) {
    FieldValue field{};
    field.fieldId = id;
    field.scopeId = scope;
    EXPECT_EQ(nv.nvmlDeviceGetFieldValues(gpu(index), 1, &field), kSuccess);
    return field;
  };
  EXPECT_EQ(read(0, kFieldEccUncorrectedVolatile).value.ullVal, 0u);
  at(5);
  EXPECT_EQ(read(0, kFieldEccUncorrectedVolatile).value.ullVal, 2u);
  EXPECT_EQ(read(1, kFieldEccUncorrectedVolatile).nvmlReturn, kNotSupported);
  EXPECT_EQ(read(0, kFieldRetiredPending).nvmlReturn, kNotSupported) << "from Ampere on rows are remapped instead";
  EXPECT_EQ(read(0, kFieldRemapPending).nvmlReturn, kSuccess);
  EXPECT_EQ(read(0, kFieldMemoryTemperature).value.uiVal, 46u);
  EXPECT_EQ(read(0, kFieldNvlinkSent, 0).nvmlReturn, kSuccess) << "of the first link";
  EXPECT_EQ(read(0, kFieldNvlinkSent, 99).nvmlReturn, kInvalidArgument) << "of which link?";
  EXPECT_EQ(read(0, kFieldNvlinkSent, kScopeAllLinks).nvmlReturn, kSuccess);
}

TEST_F(EventsTest, AReloadNeedsANewBeginningAndTheCounterStartsAtZero) {
  open(R"(
gpus: [{model: T4, counter_start_joules: 5000}]
events: [{at: 10, do: driver_reload, for: 3}]
)");
  const Device before = gpu();
  at(9.9);
  EXPECT_GT(counter(before), 5'000'000u);
  at(10);
  unsigned long long mj = 0;
  EXPECT_EQ(nv.nvmlDeviceGetTotalEnergyConsumption(before, &mj), kDriverNotLoaded);
  EXPECT_EQ(nv.nvmlInit_v2(), kDriverNotLoaded);
  at(13);
  EXPECT_EQ(nv.nvmlDeviceGetTotalEnergyConsumption(before, &mj), kUninitialized);
  ASSERT_EQ(nv.nvmlShutdown(), kSuccess);
  ASSERT_EQ(nv.nvmlInit_v2(), kSuccess);
  EXPECT_EQ(nv.nvmlDeviceGetTotalEnergyConsumption(before, &mj), kInvalidArgument) << "handles are gone too";
  at(14);
  EXPECT_NEAR(static_cast<double>(counter(gpu())), 9'000, 500);  // 9 W for one second
}

TEST_F(EventsTest, TheCounterMayStartAgainByItself) {
  open("noise: 0\ngpus: [{model: T4}, {model: T4}]\nevents: [{at: 10, do: counter_reset, gpu: 0}]\n");
  at(11);
  EXPECT_EQ(counter(gpu(0)), 9'000u);
  EXPECT_EQ(counter(gpu(1)), 99'000u);
}

TEST_F(EventsTest, ErrorsByCallGpuAndTime) {
  open(R"(
gpus: [{model: T4}, {model: T4}]
events:
  - {at: 2, do: error, call: nvmlDeviceGetPowerUsage, gpu: 1, code: 999, until: 4}
  - {at: 6, do: error, call: nvmlDeviceGetCount_v2, code: 4}
missing_symbols: [nvmlDeviceGetProcessesUtilizationInfo]
)");
  unsigned mw = 0, count = 0;
  at(3);
  EXPECT_EQ(nv.nvmlDeviceGetPowerUsage(gpu(1), &mw), kUnknown);
  EXPECT_EQ(nv.nvmlDeviceGetPowerUsage(gpu(0), &mw), kSuccess);
  at(4);
  EXPECT_EQ(nv.nvmlDeviceGetPowerUsage(gpu(1), &mw), kSuccess);
  at(6);
  EXPECT_EQ(nv.nvmlDeviceGetCount_v2(&count), kNoPermission);
  ProcessesUtilizationInfo info{kProcessesUtilizationInfoVersion1, 0, 0, nullptr};
  EXPECT_EQ(nv.nvmlDeviceGetProcessesUtilizationInfo(gpu(0), &info), kFunctionNotFound);
}

TEST_F(EventsTest, XidsComeOnceAndOnlyToThoseWhoWait) {
  open(
      "gpus: [{model: T4}, {model: T4}]\nevents: [{at: 5, do: xid, gpu: 1, xid: 79}, {at: 4, do: xid, gpu: 0, xid: "
      "31}]\n");
  EventSet both = nullptr, late = nullptr;
  ASSERT_EQ(nv.nvmlEventSetCreate(&both), kSuccess);
  ASSERT_EQ(nv.nvmlDeviceRegisterEvents(gpu(0), kEventTypeXid, both), kSuccess);
  ASSERT_EQ(nv.nvmlDeviceRegisterEvents(gpu(1), kEventTypeXid, both), kSuccess);
  EventData event{};
  EXPECT_EQ(nv.nvmlEventSetWait_v2(both, &event, 0), kTimeout);
  at(6);
  ASSERT_EQ(nv.nvmlEventSetCreate(&late), kSuccess);
  ASSERT_EQ(nv.nvmlDeviceRegisterEvents(gpu(1), kEventTypeXid, late), kSuccess);
  ASSERT_EQ(nv.nvmlEventSetWait_v2(both, &event, 0), kSuccess);
  EXPECT_EQ(event.eventData, 31u);
  EXPECT_EQ(event.device, gpu(0));
  ASSERT_EQ(nv.nvmlEventSetWait_v2(both, &event, 0), kSuccess);
  EXPECT_EQ(event.eventData, 79u);
  EXPECT_EQ(event.eventType, kEventTypeXid);
  EXPECT_EQ(nv.nvmlEventSetWait_v2(both, &event, 0), kTimeout);
  EXPECT_EQ(nv.nvmlEventSetWait_v2(late, &event, 0), kTimeout);
  EXPECT_EQ(nv.nvmlEventSetFree(both), kSuccess);
  EXPECT_EQ(nv.nvmlEventSetWait_v2(both, &event, 0), kInvalidArgument);
}

TEST_F(EventsTest, AccountingKeepsTheDeadAndIsOffAfterAReload) {
  open(R"(
gpus: [{model: T4}]
processes: [{pid: 70, gpus: 0, start: 2, end: 6, memory: 1GiB, load: {kind: fp32, busy: 80}}]
events:
  - {at: 1, do: accounting, gpu: 0, on: true}
  - {at: 20, do: driver_reload, for: 1}
)");
  unsigned mode = 9;
  at(0.5);
  ASSERT_EQ(nv.nvmlDeviceGetAccountingMode(gpu(), &mode), kSuccess);
  EXPECT_EQ(mode, 0u);
  at(4);
  AccountingStats stats{};
  ASSERT_EQ(nv.nvmlDeviceGetAccountingStats(gpu(), 70, &stats), kSuccess);
  EXPECT_EQ(stats.isRunning, 1u);
  EXPECT_EQ(stats.time, 0u);
  at(10);
  unsigned pids[8], count = 8;
  ASSERT_EQ(nv.nvmlDeviceGetAccountingPids(gpu(), &count, pids), kSuccess);
  ASSERT_EQ(count, 1u);
  ASSERT_EQ(nv.nvmlDeviceGetAccountingStats(gpu(), 70, &stats), kSuccess);
  EXPECT_EQ(stats.isRunning, 0u);
  EXPECT_NEAR(static_cast<double>(stats.time), 4000, 200);
  EXPECT_EQ(stats.startTime, wall(2));
  EXPECT_EQ(stats.maxMemoryUsage, 1ull << 30);
  EXPECT_NEAR(stats.gpuUtilization, 80, 5);
  AccountingStats_v2 sums{};
  sums.pid = 70;
  ASSERT_EQ(nv.nvmlDeviceGetAccountingStats_v2(gpu(), &sums), kSuccess);
  EXPECT_NEAR(static_cast<double>(sums.sumGpuUtil) / sums.sampleCount, 8000, 500);
  EXPECT_EQ(nv.nvmlDeviceGetAccountingStats(gpu(), 71, &stats), kNotFound);
  at(21);
  ASSERT_EQ(nv.nvmlShutdown(), kSuccess);
  ASSERT_EQ(nv.nvmlInit_v2(), kSuccess);
  ASSERT_EQ(nv.nvmlDeviceGetAccountingMode(gpu(), &mode), kSuccess);
  EXPECT_EQ(mode, 0u);
}

}  // namespace
}  // namespace gpuledger::sim_test
