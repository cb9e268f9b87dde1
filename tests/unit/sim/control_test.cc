// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "sim_driver.h"
#include "support/eventually.h"

namespace gpuledger::sim_test {
namespace {

using namespace nvml;
using Entries = std::vector<std::string>;

class ControlTest : public SimTest {
 protected:
  void SetUp() override {
    SimTest::SetUp();
    setenv("GPU_LEDGER_SIM_CONTROL", control().c_str(), 1);
  }
  void TearDown() override {
    SimTest::TearDown();
    unsetenv("GPU_LEDGER_SIM_CONTROL");
  }
  std::string control() const { return folder_ + "/control"; }
  // As whoever switches a fault should: the file is never there by half.
  void command(const std::string& lines) {
    std::ofstream(control() + ".new") << lines;
    std::filesystem::rename(control() + ".new", control());
  }
  Entries seen() const {
    std::ifstream file(control() + ".seen");
    Entries entries;
    for (std::string line; std::getline(file, line);) entries.push_back(line);
    return entries;
  }
  Return read_counter(Device device) {
    unsigned long long mj = 0;
    return nv.nvmlDeviceGetTotalEnergyConsumption(device, &mj);
  }
};

TEST_F(ControlTest, ACallOfOneGpuHangsUntilTheCommandIsGone) {
  open("gpus: [{model: T4}, {model: T4}]\n");
  const Device first = gpu(0), second = gpu(1);
  command("{do: hang, call: nvmlDeviceGetPowerUsage, gpu: 1}\n");
  std::atomic<bool> returned = false;
  std::thread hanging([&] {
    power(second);
    returned = true;
  });
  EXPECT_TRUE(eventually([&] { return !seen().empty() && seen().back() == "hangs nvmlDeviceGetPowerUsage"; }));
  EXPECT_FALSE(returned);
  power(first);
  EXPECT_EQ(read_counter(second), kSuccess) << "another call of that GPU";
  EXPECT_FALSE(returned);
  command("");
  hanging.join();
  power(second);
}

TEST_F(ControlTest, OpeningTheDriverHangsToo) {
  command("# none answers\n{do: hang, call: nvmlInit_v2}\n");
  std::thread hanging([&] { open("gpus: [{model: T4}]\n"); });
  EXPECT_TRUE(eventually([&] { return !seen().empty() && seen().back() == "hangs nvmlInit_v2"; }));
  std::filesystem::remove(control());  // no file is no command
  hanging.join();
  power(gpu());
}

TEST_F(ControlTest, FaultsHoldWhileTheirLinesAreThere) {
  open("gpus: [{model: T4}, {model: T4}]\n");
  const Device first = gpu(0), second = gpu(1);
  EXPECT_EQ(read_counter(second), kSuccess);
  command("{do: gpu_lost, gpu: 1}\n{do: error, call: nvmlDeviceGetPowerUsage, code: 4}\n");
  unsigned mw = 0;
  EXPECT_EQ(read_counter(second), kGpuIsLost);
  EXPECT_EQ(read_counter(first), kSuccess);
  EXPECT_EQ(nv.nvmlDeviceGetPowerUsage(first, &mw), kNoPermission);
  at(100);
  EXPECT_EQ(read_counter(second), kGpuIsLost) << "no time ends it";
  command("{do: gpu_lost, gpu: 1}\n");
  EXPECT_EQ(read_counter(second), kGpuIsLost);
  EXPECT_EQ(nv.nvmlDeviceGetPowerUsage(first, &mw), kSuccess);
  command("");
  EXPECT_EQ(read_counter(second), kSuccess);
}

TEST_F(ControlTest, ASlowCallTakesItsTime) {
  setenv("GPU_LEDGER_SIM_CLOCK", "real", 1);
  open("gpus: [{model: T4}]\n");
  command("{do: slow, call: nvmlDeviceGetPowerUsage, ms: 40}\n");
  const auto began = std::chrono::steady_clock::now();
  power(gpu());
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(40));
}

TEST_F(ControlTest, TheDriverIsAwayAndComesBackAsAnother) {
  open("driver: 550.54.15\ngpus: [{model: T4, counter_start_joules: 5000}]\n");
  const Device before = gpu();
  at(10);
  EXPECT_GT(counter(before), 5'000'000u);
  command("{do: driver_reload, driver: 580.65.06}\n");
  EXPECT_EQ(read_counter(before), kDriverNotLoaded);
  EXPECT_EQ(nv.nvmlInit_v2(), kDriverNotLoaded);
  at(20);
  EXPECT_EQ(nv.nvmlInit_v2(), kDriverNotLoaded);
  command("");
  EXPECT_EQ(read_counter(before), kUninitialized);
  ASSERT_EQ(nv.nvmlShutdown(), kSuccess);
  ASSERT_EQ(nv.nvmlInit_v2(), kSuccess);
  char version[80] = {};
  ASSERT_EQ(nv.nvmlSystemGetDriverVersion(version, sizeof version), kSuccess);
  EXPECT_STREQ(version, "580.65.06");
  at(21);
  EXPECT_NEAR(static_cast<double>(counter(gpu())), 9'000, 1'000);  // 9 W for one second
}

TEST_F(ControlTest, ProcessesStartAndExit) {
  const std::string root = folder_ + "/root";
  setenv("GPU_LEDGER_SIM_ROOT", root.c_str(), 1);
  const auto lives = [&](unsigned pid) { return std::filesystem::exists(root + "/proc/" + std::to_string(pid)); };
  open("noise: 0\ngpus: [{model: T4}]\nprocesses: [{pid: 70, gpus: 0, memory: 1GiB, load: {kind: fp32, watts: 20}}]\n");
  at(5);
  ASSERT_EQ(compute(gpu()).size(), 1u);
  const unsigned with_one = power(gpu());
  command("{do: process_start, process: {pid: 80, gpus: 0, memory: 2GiB, load: {kind: fp32, watts: 40, weight: 3}}}\n");
  ASSERT_EQ(compute(gpu()).size(), 2u);
  EXPECT_TRUE(lives(80));
  at(10);
  EXPECT_GT(power(gpu()), with_one + 5'000);
  command("{do: process_start, process: {pid: 80, gpus: 0, memory: 2GiB, load: {kind: fp32, watts: 40, weight: 3}}}\n"
          "{do: process_exit, pid: 70}\n");
  ASSERT_EQ(compute(gpu()).size(), 1u);
  EXPECT_EQ(compute(gpu())[0].pid, 80u);
  EXPECT_FALSE(lives(70));
  command("");
  EXPECT_TRUE(compute(gpu()).empty()) << "one that a command started ends with it, one that ended stays away";
  EXPECT_FALSE(lives(80));
}

TEST_F(ControlTest, WhatHappensOnceHappensAgainOnlyIfItIsSaidAgain) {
  open("gpus: [{model: T4}]\n");
  EventSet set = nullptr;
  ASSERT_EQ(nv.nvmlEventSetCreate(&set), kSuccess);
  ASSERT_EQ(nv.nvmlDeviceRegisterEvents(gpu(), kEventTypeXid, set), kSuccess);
  EventData event{};
  const auto wait = [&] { return nv.nvmlEventSetWait_v2(set, &event, 0); };
  at(1);
  command("{do: xid, gpu: 0, xid: 31}\n");
  EXPECT_EQ(wait(), kSuccess);
  EXPECT_EQ(event.eventData, 31u);
  EXPECT_EQ(wait(), kTimeout);
  command("{do: xid, gpu: 0, xid: 31}\n{do: xid, gpu: 0, xid: 31}\n");
  EXPECT_EQ(wait(), kSuccess);
  EXPECT_EQ(wait(), kTimeout);
  command("");
  EXPECT_EQ(wait(), kTimeout);
}

// An hour: the wait ends with the event or not at all.
TEST_F(ControlTest, InRealTimeWaitingEndsWithTheEvent) {
  setenv("GPU_LEDGER_SIM_CLOCK", "real", 1);
  open("gpus: [{model: T4}]\n");
  EventSet set = nullptr;
  ASSERT_EQ(nv.nvmlEventSetCreate(&set), kSuccess);
  ASSERT_EQ(nv.nvmlDeviceRegisterEvents(gpu(), kEventTypeXid, set), kSuccess);
  command("{do: hang, call: nvmlEventSetWait_v2}\n");
  EventData event{};
  std::thread waiting([&] { EXPECT_EQ(nv.nvmlEventSetWait_v2(set, &event, 3'600'000), kSuccess); });
  EXPECT_TRUE(eventually([&] { return seen().back() == "hangs nvmlEventSetWait_v2"; }));
  command("");
  EXPECT_TRUE(eventually([&] { return read_counter(gpu()) == kSuccess && seen().back().starts_with("end "); }));
  command("{do: xid, gpu: 0, xid: 43}\n");
  waiting.join();
  EXPECT_EQ(event.eventData, 43u);
}

// A library that is closed and opened again, as after a reload, must not turn the counter back.
TEST_F(ControlTest, ANodeThatIsLoadedAgainHasTheSamePast) {
  open("noise: 0\ngpus: [{model: T4}]\nprocesses: [{pid: 70, gpus: 0, load: fp32}]\n");
  at(10);
  command("{do: counter_reset, gpu: 0}\n{do: process_exit, pid: 70}\n");
  counter(gpu());
  at(20);
  command("{do: driver_reload}\n");
  EXPECT_EQ(nv.nvmlInit_v2(), kDriverNotLoaded);
  at(21);
  EXPECT_EQ(nv.nvmlInit_v2(), kDriverNotLoaded);
  command("");
  (void)nv.nvmlShutdown();
  at(30);
  ASSERT_EQ(nv.nvmlInit_v2(), kSuccess);
  const unsigned long long before = counter(gpu());
  EXPECT_LT(before, 100'000u);
  nv.reset();
  at(30);
  ASSERT_EQ(nv.nvmlInit_v2(), kSuccess);
  EXPECT_EQ(counter(gpu()), before);
  EXPECT_TRUE(compute(gpu()).empty());
}

TEST_F(ControlTest, AWrongCommandFailsEveryCallUntilItIsCorrected) {
  open("gpus: [{model: T4}]\nprocesses: [{pid: 70, gpus: 0}]\n");
  const Device device = gpu();
  const std::pair<const char*, const char*> wrong[] = {
      {"{do: gpu_lost, gpu: 3}", "'gpu' is not there"},
      {"{do: gpu_lost, gpu: 0, until: 5}", "unknown setting 'until'"},
      {"{do: gpu_lost, gpu: 0, at: 5}", "unknown setting 'at'"},
      {"{do: gpu_back, gpu: 0}", "'do' must be gpu_lost, "},
      {"{do: process_exit, pid: 71}", "'pid' is of no process that lives"},
      {"{do: slow, call: nvmlInit_v2}", "needs 'ms'"},
      {"{do: ", "not YAML"},
  };
  for (const auto& [line, why] : wrong) {
    ::testing::internal::CaptureStderr();
    command(std::string(line) + "\n");
    EXPECT_EQ(read_counter(device), kUnknown) << line;
    EXPECT_NE(::testing::internal::GetCapturedStderr().find(why), std::string::npos) << line;
    EXPECT_EQ(nv.nvmlInit_v2(), kUnknown);
    EXPECT_NE(std::string(nv.error()).find(line), std::string::npos) << nv.error();
    command("");
    EXPECT_EQ(read_counter(device), kSuccess) << line;
  }
}

}  // namespace
}  // namespace gpuledger::sim_test
