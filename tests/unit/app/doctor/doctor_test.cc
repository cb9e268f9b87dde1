// SPDX-License-Identifier: Apache-2.0
#include "app/doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuledger::app {
namespace {

using ::testing::HasSubstr;
using Level = Finding::Level;

DeviceSample healthy(uint32_t index) {
  auto description = std::make_shared<DeviceDescription>();
  description->uuid = {"GPU-" + std::to_string(index)};
  description->index = index;
  description->accounting_enabled = true;
  DeviceSample device;
  device.description = description;
  device.up = true;
  device.energy_counter = Energy::millijoules(1000);
  device.power = Power::watts(100);
  device.gpu_utilization = Ratio{0};
  device.utilization = UtilizationState::kKnown;
  return device;
}

DeviceDescription& description_of(DeviceSample& device) {
  auto copy = std::make_shared<DeviceDescription>(*device.description);
  device.description = copy;
  return *copy;
}

SampleBatch batch_of(std::vector<DeviceSample> devices) {
  SampleBatch batch;
  batch.health.up = true;
  batch.devices = std::move(devices);
  return batch;
}

// The same a second later, as it should be.
SampleBatch later(SampleBatch batch) {
  for (DeviceSample& device : batch.devices)
    if (device.energy_counter) *device.energy_counter += Energy::millijoules(100);
  return batch;
}

Finding finding_of(const Findings& findings, const std::string& subject) {
  for (const Finding& finding : findings)
    if (finding.subject == subject) return finding;
  ADD_FAILURE() << "nothing was said of " << subject;
  return {};
}

Finding said_of(const DeviceSample& device, const std::string& subject) {
  const SampleBatch first = batch_of({healthy(0), device});
  return finding_of(check_gpus(first, later(first)), subject);
}

TEST(DoctorSplitError, SaysHowFarTheSplitIsOff) {
  const Finding finding = check_split_error({{0, 0.043, 12}, {1, std::nullopt, 0}, {3, 0.001, 1}, {4, 1e18, 2}});
  EXPECT_EQ(finding.level, Level::kOk);
  EXPECT_THAT(finding.text,
              HasSubstr("GPU 0 off by about 4 % (12 comparisons); GPU 3 off by less than 1 % (1 comparison)"));
  EXPECT_THAT(finding.text, HasSubstr("GPU 4 off by about 100 %"));
  EXPECT_THAT(check_split_error({{0, std::nullopt, 0}}).text, HasSubstr("nothing yet"));
}

TEST(Doctor, SlurmJobsOfAFolderThatOthersMayWrite) {
  Config config;
  config.slurm_job_dir = ::testing::TempDir() + "/doctor-slurm-jobs." + std::to_string(::getpid());
  EXPECT_TRUE(check_slurm_jobs(config).empty()) << "no Slurm here";
  ASSERT_EQ(::mkdir(config.slurm_job_dir.c_str(), 0755), 0);
  EXPECT_EQ(finding_of(check_slurm_jobs(config), "slurm jobs").level, Level::kOk);
  ASSERT_EQ(::chmod(config.slurm_job_dir.c_str(), 0777), 0);
  const Finding finding = finding_of(check_slurm_jobs(config), "slurm jobs");
  EXPECT_EQ(finding.level, Level::kWarn);
  EXPECT_THAT(finding.text, HasSubstr("mode 0755"));
  ::rmdir(config.slurm_job_dir.c_str());
}

TEST(Doctor, HealthyGpusAreOk) {
  const SampleBatch first = batch_of({healthy(0), healthy(1)});
  const Findings findings = check_gpus(first, later(first));
  EXPECT_EQ(findings.size(), 5u);
  for (const Finding& finding : findings) EXPECT_EQ(finding.level, Level::kOk) << write_finding(finding);
}

TEST(Doctor, DriverThatWentAway) {
  SampleBatch second = batch_of({});
  second.health.up = false;
  second.health.reason = "driver not loaded";
  const Finding finding = finding_of(check_gpus(batch_of({healthy(0)}), second), "gpus");
  EXPECT_EQ(finding.level, Level::kFail);
  EXPECT_THAT(finding.text, HasSubstr("driver not loaded"));
}

TEST(Doctor, LostGpu) {
  DeviceSample device = healthy(3);
  device.up = false;
  const Finding finding = said_of(device, "gpus");
  EXPECT_EQ(finding.level, Level::kFail);
  EXPECT_THAT(finding.text, HasSubstr("GPU 3: no answer"));
  EXPECT_THAT(finding.text, HasSubstr("--gpu-reset"));
}

TEST(Doctor, GpusThatAreNamedAndNotThere) {
  SampleBatch first = batch_of({healthy(0)});
  first.missing_gpus = {"1", "2"};
  const Finding finding = finding_of(check_gpus(first, later(first)), "gpus");
  EXPECT_EQ(finding.level, Level::kWarn);
  EXPECT_THAT(finding.text, HasSubstr("not there: 1, 2"));
}

TEST(Doctor, EnergyThatStandsStillOrIsNotCounted) {
  const SampleBatch first = batch_of({healthy(0), healthy(1)});
  Finding finding = finding_of(check_gpus(first, first), "energy");
  EXPECT_EQ(finding.level, Level::kWarn);
  EXPECT_THAT(finding.text, HasSubstr("GPUs 0, 1"));
  DeviceSample old = healthy(1);
  old.energy_counter.reset();
  description_of(old).energy_source = EnergySource::kPowerIntegral;
  finding = said_of(old, "energy");
  EXPECT_EQ(finding.level, Level::kWarn);
  EXPECT_THAT(finding.text, HasSubstr("GPU 1: no energy counter"));
}

TEST(Doctor, UtilizationThatNobodyTells) {
  DeviceSample device = healthy(1);
  device.utilization = UtilizationState::kFailed;
  EXPECT_EQ(said_of(device, "utilization").level, Level::kWarn);
  description_of(device).mig_enabled = true;
  EXPECT_EQ(said_of(device, "utilization").level, Level::kOk) << "with MIG that is how it is";
}

TEST(Doctor, AccountingOff) {
  DeviceSample device = healthy(1);
  description_of(device).accounting_enabled = false;
  const Finding finding = said_of(device, "accounting");
  EXPECT_EQ(finding.level, Level::kWarn);
  EXPECT_THAT(finding.text, HasSubstr("gpu-ledger accounting on"));
  EXPECT_THAT(finding.text, HasSubstr("their energy is booked")) << "no joule depends on it";
  description_of(device).mig_enabled = true;
  EXPECT_EQ(said_of(device, "accounting").level, Level::kOk) << "with MIG there is none to be had";
}

TEST(Doctor, MigWithoutInstancesOrWithHiddenProcesses) {
  DeviceSample device = healthy(1);
  description_of(device).mig_enabled = true;
  Finding finding = said_of(device, "mig");
  EXPECT_EQ(finding.level, Level::kWarn);
  EXPECT_THAT(finding.text, HasSubstr("nvidia-smi mig -cgi"));

  MigInstance instance;
  instance.memory_total = Bytes{10'000};
  instance.memory_used = Bytes{9'000};
  description_of(device).mig.push_back(instance);
  finding = said_of(device, "mig");
  EXPECT_EQ(finding.level, Level::kFail);
  EXPECT_THAT(finding.text, HasSubstr("NVIDIA_MIG_MONITOR_DEVICES=all"));

  ProcessSample process;
  process.pid = 7;
  device.processes.push_back(process);
  EXPECT_EQ(said_of(device, "mig").level, Level::kOk);
}

TEST(Doctor, WorkWithoutProcesses) {
  DeviceSample device = healthy(2);
  const identity::ProcReader proc("/proc");
  EXPECT_EQ(finding_of(check_processes(batch_of({device}), proc), "processes").level, Level::kOk);
  device.gpu_utilization = Ratio{0.9};
  const Finding finding = finding_of(check_processes(batch_of({device}), proc), "processes");
  EXPECT_EQ(finding.level, Level::kFail);
  EXPECT_THAT(finding.text, HasSubstr("hostPID: true"));
}

TEST(Doctor, OneLineWhateverIsInIt) {
  EXPECT_EQ(write_finding({Level::kFail, "x", "a\nb\x1b[0m"}), "FAIL  x: ab[0m\n");
  EXPECT_EQ(write_finding({Level::kOk, "x", "y"}), "ok    x: y\n");
  EXPECT_EQ(write_finding({Level::kWarn, "x", "y"}), "warn  x: y\n");
}

TEST(Doctor, MissingSymbolsAreNamed) {
  nvml::NvmlProbe probe;
  EXPECT_EQ(check_symbols(probe).front().level, Level::kOk);
  probe.missing_symbols = {"nvmlA", "nvmlB"};
  const Finding finding = check_symbols(probe).front();
  EXPECT_EQ(finding.level, Level::kWarn);
  EXPECT_THAT(finding.text, HasSubstr("nvmlA, nvmlB"));
}

}  // namespace
}  // namespace gpuledger::app
