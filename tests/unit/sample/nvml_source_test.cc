// SPDX-License-Identifier: Apache-2.0
#include "source_fixture.h"

namespace gpuledger::nvml {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_F(SourceTest, ReadsEveryGauge) {
  gpu();
  const SampleBatch batch = sample(true);
  EXPECT_TRUE(batch.health.up);
  EXPECT_EQ(batch.health.source, "nvml");
  EXPECT_TRUE(batch.processes_scanned);
  EXPECT_TRUE(batch.health.errors.empty());
  ASSERT_THAT(batch.devices, SizeIs(1));
  const DeviceSample& d = batch.devices[0];
  EXPECT_TRUE(d.up);
  EXPECT_EQ(d.energy_counter, Energy::millijoules(1000));
  EXPECT_EQ(d.power, Power::milliwatts(70'000));
  EXPECT_DOUBLE_EQ(d.gpu_utilization.value().value, 0.4);
  EXPECT_DOUBLE_EQ(d.memory_utilization.value().value, 0.2);
  EXPECT_EQ(d.memory_used, Bytes{300});
  EXPECT_EQ(d.memory_total, Bytes{1000});
  EXPECT_EQ(d.temperature_celsius, 55);
  EXPECT_EQ(d.sm_clock_mhz, 1755);
  EXPECT_EQ(d.description->model, "NVIDIA Fake");
  EXPECT_EQ(d.description->pci_bus_id, "00000000:18:00.0");
  EXPECT_EQ(d.description->driver, "580.1");
  EXPECT_EQ(d.description->energy_source, EnergySource::kCounter);
  EXPECT_EQ(d.description->mig_enabled, false);
  EXPECT_EQ(d.description->accounting_enabled, true);
  EXPECT_EQ(d.description->power_limit, Power::milliwatts(700'000));
}

TEST_F(SourceTest, WorksWithRequiredSymbolsOnly) {
  gpu();
#define NVML_FUNCTION(need, result, symbol, parameters) \
  if (std::string(#need) == "kOptional") nvml_.missing.insert(#symbol);
#include "sample/nvml/nvml_functions.inc"
#undef NVML_FUNCTION
  const SampleBatch batch = sample(true);
  EXPECT_TRUE(batch.health.up) << batch.health.reason;
  EXPECT_TRUE(batch.health.errors.empty());
  const DeviceSample& d = batch.devices.at(0);
  EXPECT_TRUE(d.up);
  EXPECT_FALSE(d.energy_counter || d.power || d.memory_used || d.memory_total || d.temperature_celsius ||
               d.sm_clock_mhz || d.activity);
  EXPECT_EQ(d.utilization, UtilizationState::kUnsupported);
  EXPECT_EQ(d.description->energy_source, EnergySource::kPowerIntegral);
}

TEST_F(SourceTest, NotSupportedIsAskedOnceUntilTheDriverIsReopened) {
  gpu().fails["nvmlDeviceGetTotalEnergyConsumption"] = kNotSupported;
  gpu().fails["nvmlDeviceGetTemperature"] = kNotSupported;
  SampleBatch batch = sample();
  EXPECT_EQ(batch.devices[0].description->energy_source, EnergySource::kPowerIntegral);
  EXPECT_FALSE(batch.devices[0].energy_counter);
  EXPECT_EQ(batch.devices[0].power, Power::milliwatts(70'000));
  for (int i = 0; i < 5; ++i) batch = sample(true);
  EXPECT_EQ(nvml_.called("nvmlDeviceGetTotalEnergyConsumption"), 1);
  EXPECT_EQ(nvml_.called("nvmlDeviceGetTemperature"), 1);
  EXPECT_TRUE(batch.health.errors.empty());

  gpu().fails.clear();
  source().release();
  source().resume();
  batch = sample();
  EXPECT_EQ(batch.devices[0].description->energy_source, EnergySource::kCounter);
  EXPECT_TRUE(batch.devices[0].energy_counter);
}

TEST_F(SourceTest, AFailingEnergyCounterIsNotAMissingOne) {
  gpu().fails["nvmlDeviceGetTotalEnergyConsumption"] = kUnknown;
  SampleBatch batch = sample();
  EXPECT_TRUE(batch.devices[0].up);
  EXPECT_FALSE(batch.devices[0].energy_counter);
  EXPECT_EQ(batch.devices[0].description->energy_source, EnergySource::kCounter);
  EXPECT_EQ(batch.health.errors.at("internal"), 1u);
  gpu().fails.clear();
  EXPECT_TRUE(sample().devices[0].energy_counter);
}

TEST_F(SourceTest, AnEnergyCounterThatCannotBeIsAbsentAndCounted) {
  gpu().energy_mj = ~0ull;  // -1: more than any GPU ever draws, and no room for it in microjoules
  const SampleBatch batch = sample(true);
  EXPECT_FALSE(batch.devices.at(0).energy_counter.has_value());
  EXPECT_EQ(batch.devices.at(0).description->energy_source, EnergySource::kCounter);
  EXPECT_EQ(batch.health.errors.at("garbage"), 1u);
  EXPECT_EQ(batch.devices.at(0).refused_readings, 1u);
  gpu().energy_mj = 2000;
  EXPECT_EQ(sample().devices.at(0).energy_counter, Energy::millijoules(2000));
}

TEST_F(SourceTest, WhatFailsToBeReadOnceIsStillAsItWas) {
  gpu().mig_enabled = true;
  (void)sample(true);
  for (const char* call : {"nvmlDeviceGetMigMode", "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetAccountingMode"}) {
    gpu().fails[call] = kTimeout;
  }
  const SampleBatch batch = sample(true);
  const DeviceDescription& description = *batch.devices.at(0).description;
  EXPECT_EQ(description.mig_enabled, true) << "else its processes change their accounts";
  EXPECT_EQ(description.power_limit, Power::milliwatts(700'000));
  EXPECT_EQ(description.accounting_enabled, true);
}

TEST_F(SourceTest, MemoryFallsBackToTheOlderCall) {
  gpu().fails["nvmlDeviceGetMemoryInfo_v2"] = kArgumentVersionMismatch;
  EXPECT_EQ(sample().devices[0].memory_used, Bytes{400});  // the older one counts the reserved part
  EXPECT_EQ(sample().devices[0].memory_used, Bytes{400});
  EXPECT_EQ(nvml_.called("nvmlDeviceGetMemoryInfo_v2"), 1);
}

TEST_F(SourceTest, SlowChangingThingsAreReadAtScansOnly) {
  options_.readings.vitals = false;  // nvml_vitals_test.cc
  gpu();
  sample(true);
  nvml_.calls.clear();
  for (int i = 0; i < 5; ++i) sample(false);
  const std::set<std::string> every_cycle = {"nvmlDeviceGetTotalEnergyConsumption",
                                             "nvmlDeviceGetPowerUsage",
                                             "nvmlDeviceGetUtilizationRates",
                                             "nvmlDeviceGetMemoryInfo_v2",
                                             "nvmlDeviceGetTemperature",
                                             "nvmlDeviceGetClockInfo",
                                             "nvmlGpmSampleGet",
                                             "nvmlGpmMetricsGet",
                                             "nvmlDeviceGetProcessesUtilizationInfo",
                                             "nvmlEventSetWait_v2"};
  for (const auto& [symbol, count] : nvml_.calls) {
    EXPECT_TRUE(every_cycle.contains(symbol)) << symbol;
    EXPECT_EQ(count, 5) << symbol;
  }
  EXPECT_EQ(nvml_.calls.size(), every_cycle.size());
  gpu().limit_mw = 300'000;
  EXPECT_EQ(sample(false).devices[0].description->power_limit, Power::milliwatts(700'000));
  EXPECT_EQ(sample(true).devices[0].description->power_limit, Power::milliwatts(300'000));
}

TEST_F(SourceTest, InitFailureIsRetriedWithBackoff) {
  gpu();
  nvml_.fails["nvmlInit_v2"] = kDriverNotLoaded;
  SampleBatch batch = sample(true);
  EXPECT_FALSE(batch.health.up);
  EXPECT_THAT(batch.health.reason, HasSubstr("driver not loaded"));
  EXPECT_TRUE(batch.devices.empty());
  std::vector<int> tried_at = {0};
  for (int second = 1; second <= 125; ++second) {
    const int before = nvml_.loads;
    sample(true);
    if (nvml_.loads != before) tried_at.push_back(second);
  }
  EXPECT_THAT(tried_at, ElementsAre(0, 1, 3, 7, 15, 31, 61, 91, 121));
  EXPECT_EQ(batch.health.errors.at("unavailable"), 1u);
  nvml_.fails.clear();
  for (int second = 0; second < 30; ++second) batch = sample(true);
  EXPECT_TRUE(batch.health.up);
  EXPECT_EQ(batch.health.reason, "");
  EXPECT_EQ(batch.health.errors.at("unavailable"), 9u);
}

TEST_F(SourceTest, LibraryThatCannotBeLoadedIsRetried) {
  gpu();
  nvml_.loadable = false;
  EXPECT_EQ(sample().health.reason, "no library");
  nvml_.loadable = true;
  EXPECT_TRUE(sample().health.up);
}

class DriverGone : public SourceTest, public ::testing::WithParamInterface<std::pair<const char*, Return>> {};

TEST_P(DriverGone, ReopensAndFindsTheGpusAgain) {
  gpu().energy_mj = 5;
  nvml_.add_gpu("GPU-1");
  ASSERT_TRUE(sample(true).devices.at(1).up);
  const auto [symbol, result] = GetParam();
  nvml_.fails[symbol] = result;
  SampleBatch batch = sample(true);
  EXPECT_FALSE(batch.health.up);
  EXPECT_THAT(batch.health.reason, HasSubstr(symbol));
  ASSERT_THAT(batch.devices, SizeIs(2));
  EXPECT_FALSE(batch.devices[0].up || batch.devices[1].up);
  EXPECT_EQ(batch.devices[0].description->uuid.text, "GPU-0");
  EXPECT_FALSE(batch.devices[0].energy_counter);
  EXPECT_EQ(nvml_.called("nvmlShutdown"), 1);
  EXPECT_EQ(nvml_.event_sets, 0);

  // The new driver counts the GPUs the other way round and hands out other handles.
  nvml_.fails.clear();
  std::swap(*nvml_.gpus[0], *nvml_.gpus[1]);
  gpu(1).fails.clear();
  batch = sample();
  EXPECT_TRUE(batch.health.up);
  EXPECT_EQ(nvml_.loads, 2);
  EXPECT_TRUE(batch.processes_scanned);
  ASSERT_THAT(batch.devices, SizeIs(2));
  EXPECT_TRUE(batch.devices[0].up && batch.devices[1].up);
  EXPECT_EQ(batch.devices[0].description->uuid.text, "GPU-1");
  EXPECT_EQ(batch.devices[1].description->uuid.text, "GPU-0");
  EXPECT_EQ(batch.devices[1].description->index, 1u);
  EXPECT_EQ(batch.devices[1].energy_counter, Energy::millijoules(5));
}

INSTANTIATE_TEST_SUITE_P(AnyCall, DriverGone,
                         ::testing::Values(std::pair("nvmlDeviceGetTotalEnergyConsumption", kUninitialized),
                                           std::pair("nvmlDeviceGetPowerUsage", kDriverNotLoaded),
                                           std::pair("nvmlDeviceGetProcessesUtilizationInfo", kLibRmVersionMismatch),
                                           std::pair("nvmlDeviceGetComputeRunningProcesses_v3", kUninitialized),
                                           std::pair("nvmlEventSetWait_v2", kDriverNotLoaded),
                                           std::pair("nvmlDeviceGetCount_v2", kUninitialized)));

TEST_F(SourceTest, AGpuOfADriverThatIsGoneIsNotAsked) {
  gpu();
  sample(true);
  nvml_.calls.clear();
  nvml_.fails["nvmlDeviceGetCount_v2"] = kUninitialized;
  const SampleBatch batch = sample(true);
  EXPECT_EQ(nvml_.called("nvmlDeviceGetTotalEnergyConsumption"), 0);
  EXPECT_EQ(batch.health.errors.at("unavailable"), 1u);
}

TEST_F(SourceTest, ADriverThatComesAndGoesIsNotHammered) {
  gpu();
  sample();
  nvml_.fails["nvmlDeviceGetPowerUsage"] = kUninitialized;
  for (int second = 0; second < 60; ++second) sample();
  EXPECT_LT(nvml_.loads, 10);
}

class LostGpu : public SourceTest, public ::testing::WithParamInterface<Return> {};

TEST_P(LostGpu, TheOthersGoOnAndItComesBack) {
  gpu().name = "Lost";
  gpu().compute = {{11, 1, kNoInstance, kNoInstance}};
  nvml_.add_gpu("GPU-1");
  sample(true);
  gpu().fails["*"] = GetParam();
  SampleBatch batch = sample(false);
  EXPECT_TRUE(batch.health.up);
  EXPECT_THAT(batch.health.reason, HasSubstr("GPU-0"));
  EXPECT_FALSE(batch.devices[0].up);
  EXPECT_EQ(batch.devices[0].description->model, "Lost");
  EXPECT_FALSE(batch.devices[0].power || batch.devices[0].memory_used);
  EXPECT_THAT(batch.devices[0].processes, SizeIs(0));
  EXPECT_TRUE(batch.devices[1].up);
  EXPECT_GE(batch.health.errors.at(code_name(code_of(GetParam()))), 1u);

  nvml_.calls.clear();
  sample(false);
  EXPECT_EQ(nvml_.called("nvmlShutdown"), 0);
  const int asked = means_gpu_gone(GetParam()) ? 1 : 2;  // who says that it is lost is not asked on
  EXPECT_EQ(nvml_.called("nvmlDeviceGetTemperature"), asked);

  gpu().fails.clear();
  batch = sample(false);
  EXPECT_TRUE(batch.devices[0].up);
  EXPECT_THAT(batch.devices[0].processes, SizeIs(1));
  EXPECT_EQ(batch.health.reason, "");
  EXPECT_EQ(nvml_.loads, 1);
}

INSTANTIATE_TEST_SUITE_P(Codes, LostGpu, ::testing::Values(kGpuIsLost, kResetRequired, kUnknown, kTimeout));

TEST_F(SourceTest, AGpuLostInTheMiddleSaysNothingHalf) {
  gpu();
  sample(true);
  gpu().fails["nvmlDeviceGetProcessesUtilizationInfo"] = kGpuIsLost;
  const DeviceSample d = sample().devices[0];
  EXPECT_FALSE(d.up);
  EXPECT_FALSE(d.energy_counter);
}

TEST_F(SourceTest, AGpuLostFromTheStartIsTakenInLater) {
  gpu().fails["*"] = kGpuIsLost;
  nvml_.add_gpu("GPU-1");
  SampleBatch batch = sample(true);
  ASSERT_THAT(batch.devices, SizeIs(1));
  EXPECT_EQ(batch.devices[0].description->index, 1u);
  gpu().fails.clear();
  batch = sample(true);
  ASSERT_THAT(batch.devices, SizeIs(2));
  EXPECT_EQ(batch.devices[0].description->uuid.text, "GPU-0");
}

TEST_F(SourceTest, AnIndexThatChangesUnderAGpuIsFollowed) {
  gpu();
  nvml_.add_gpu("GPU-1");
  sample(true);
  std::swap(nvml_.gpus[0], nvml_.gpus[1]);  // the handles stay
  const SampleBatch batch = sample(true);
  ASSERT_THAT(batch.devices, SizeIs(2));
  EXPECT_EQ(batch.devices[0].description->uuid.text, "GPU-1");
  EXPECT_EQ(batch.devices[0].description->index, 0u);
  EXPECT_EQ(batch.devices[1].description->index, 1u);
}

TEST_F(SourceTest, XidsAreDrainedBoundedAndBookedToTheirGpu) {
  gpu();
  nvml_.add_gpu("GPU-1");
  sample();
  EXPECT_THAT(nvml_.watched, SizeIs(2));
  for (unsigned long long i = 0; i < 70; ++i) nvml_.events.emplace_back(&gpu(1), 31);
  nvml_.events.emplace_back(&gpu(0), 79);
  SampleBatch batch = sample();
  EXPECT_THAT(batch.devices[0].xids, SizeIs(0));
  EXPECT_THAT(batch.devices[1].xids, SizeIs(64));
  batch = sample();
  EXPECT_THAT(batch.devices[0].xids, ElementsAre(79));
  EXPECT_THAT(batch.devices[1].xids, SizeIs(6));
}

TEST_F(SourceTest, GpusWithoutEventsAreFine) {
  gpu().fails["nvmlDeviceRegisterEvents"] = kNotSupported;
  const SampleBatch batch = sample();
  EXPECT_TRUE(batch.health.errors.empty());
  EXPECT_EQ(nvml_.called("nvmlEventSetWait_v2"), 0);
}

TEST_F(SourceTest, ReleaseLetsTheDriverGoUntilResume) {
  gpu();
  sample(true);
  source().release();
  EXPECT_EQ(nvml_.initialized, 0);
  EXPECT_EQ(nvml_.event_sets, 0);
  nvml_.calls.clear();
  const SampleBatch batch = sample(true);
  EXPECT_TRUE(nvml_.calls.empty());
  EXPECT_FALSE(batch.health.up);
  EXPECT_THAT(batch.health.reason, HasSubstr("released"));
  ASSERT_THAT(batch.devices, SizeIs(1));
  EXPECT_FALSE(batch.devices[0].up);
  source().resume();
  EXPECT_TRUE(sample().devices.at(0).up);
}

TEST_F(SourceTest, CallTimesAreBookedBySymbol) {
  gpu();
  sample();
  const SampleBatch batch = sample();
  const DurationHistogram& energy = batch.call_durations.at("nvmlDeviceGetTotalEnergyConsumption");
  EXPECT_EQ(energy.counts[0], 2u);
  EXPECT_EQ(batch.call_durations.at("nvmlInit_v2").counts[0], 1u);
}

TEST_F(SourceTest, FilterTakesIndexesAndUuids) {
  gpu();
  nvml_.add_gpu("GPU-1");
  nvml_.add_gpu("GPU-2");
  options_.gpu_devices = {"GPU-2", "0"};
  const SampleBatch batch = sample(true);
  ASSERT_THAT(batch.devices, SizeIs(2));
  EXPECT_EQ(batch.devices[0].description->uuid.text, "GPU-0");
  EXPECT_EQ(batch.devices[1].description->uuid.text, "GPU-2");
  EXPECT_EQ(batch.devices[1].description->index, 2u);
}

TEST_F(SourceTest, ProbeSaysWhatThereIsAndLeavesItOpen) {
  gpu();
  nvml_.missing = {"nvmlDeviceGetTotalEnergyConsumption"};
  const Result<NvmlProbe> probe = source().probe();
  ASSERT_TRUE(probe) << probe.error().message;
  EXPECT_EQ(probe->driver, "580.1");
  ASSERT_THAT(probe->gpus, SizeIs(1));
  EXPECT_EQ(probe->gpus[0].model, "NVIDIA Fake");
  EXPECT_THAT(probe->missing_symbols, ::testing::Contains("nvmlDeviceGetTotalEnergyConsumption"));
  sample();
  EXPECT_EQ(nvml_.loads, 1);
}

TEST_F(SourceTest, ProbeNamesWhatIsWrong) {
  gpu();
  nvml_.fails["nvmlInit_v2"] = kDriverNotLoaded;
  EXPECT_THAT(source().probe().error().message, HasSubstr("modprobe nvidia"));
  nvml_.fails["nvmlInit_v2"] = kLibRmVersionMismatch;
  EXPECT_THAT(source().probe().error().message, HasSubstr("different versions"));
  nvml_.fails.clear();
  gpu().fails["nvmlDeviceGetHandleByIndex_v2"] = kNoPermission;
  const Error refused = source().probe().error();
  EXPECT_EQ(refused.code, Code::kPermission);
  EXPECT_THAT(refused.message, HasSubstr("/dev/nvidia"));
}

TEST_F(SourceTest, ProbeWithoutAnyGpu) {
  const Error error = source().probe().error();
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_THAT(error.message, HasSubstr("no GPU"));
  const SampleBatch batch = sample();
  EXPECT_FALSE(batch.health.up);
  EXPECT_THAT(batch.health.reason, HasSubstr("no GPU"));
}

TEST_F(SourceTest, GpusThatAreNotThereAreNamedAndTheOthersWatched) {
  gpu();
  options_.gpu_devices = {"0", "1", "GPU-7"};
  const Result<NvmlProbe> probe = source().probe();
  ASSERT_TRUE(probe) << probe.error().message;
  EXPECT_THAT(probe->gpus, SizeIs(1));
  const SampleBatch batch = sample(true);
  EXPECT_THAT(batch.devices, SizeIs(1));
  ASSERT_TRUE(batch.missing_gpus);
  EXPECT_THAT(*batch.missing_gpus, ElementsAre("1", "GPU-7"));
}

TEST_F(SourceTest, NoFilterMissesNobody) {
  gpu();
  EXPECT_FALSE(sample(true).missing_gpus);
}

TEST_F(SourceTest, ProbeRefusesAFilterOfWhichNothingIsThere) {
  gpu();
  options_.gpu_devices = {"3", "GPU-7"};
  EXPECT_THAT(source().probe().error().message, HasSubstr("--gpu-devices names 3, GPU-7"));
}

}  // namespace
}  // namespace gpuledger::nvml
