// SPDX-License-Identifier: Apache-2.0
#include "sim_driver.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace gpuledger::sim_test {

nvml::SimFunctions SimTest::nv;

std::string sim_library(const std::string& folder) {
  return GPU_LEDGER_BINARY_DIR "/sim/" + folder + "libnvidia-ml.so.1";
}

void SimTest::SetUp() {
  if (!nv.nvmlInit_v2) {
    void* library = dlopen(sim_library().c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
#define NVML_FUNCTION(need, result, name, parameters)                   \
  nv.name = reinterpret_cast<decltype(nv.name)>(dlsym(library, #name)); \
  ASSERT_NE(nv.name, nullptr) << #name;
#include "nvml_client_functions.inc"
#include "sample/nvml/nvml_functions.inc"
#undef NVML_FUNCTION
    nv.set_time = reinterpret_cast<decltype(nv.set_time)>(dlsym(library, "gpu_ledger_sim_set_time"));
    nv.error = reinterpret_cast<decltype(nv.error)>(dlsym(library, "gpu_ledger_sim_error"));
    nv.reset = reinterpret_cast<decltype(nv.reset)>(dlsym(library, "gpu_ledger_sim_reset"));
    ASSERT_TRUE(nv.set_time && nv.error && nv.reset);
  }
  std::string pattern = ::testing::TempDir() + "gpu-ledger-sim-XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  folder_ = pattern;
  setenv("GPU_LEDGER_SIM_CLOCK", "virtual", 1);
  nv.reset();
}

void SimTest::TearDown() {
  nv.reset();
  unsetenv("GPU_LEDGER_SIM_ROOT");
  unsetenv("GPU_LEDGER_SIM_SCENARIO");
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Return SimTest::try_open_file(const std::string& path) {
  nv.reset();
  setenv("GPU_LEDGER_SIM_SCENARIO", path.c_str(), 1);
  return nv.nvmlInit_v2();
}

Return SimTest::try_open(const std::string& scenario) {
  const std::string path = folder_ + "/scenario.yaml";
  std::ofstream(path) << scenario;
  return try_open_file(path);
}

void SimTest::open(const std::string& scenario) {
  ASSERT_EQ(try_open(scenario), nvml::kSuccess) << nv.error();
}

Device SimTest::gpu(unsigned index) {
  Device device = nullptr;
  EXPECT_EQ(nv.nvmlDeviceGetHandleByIndex_v2(index, &device), nvml::kSuccess);
  return device;
}

unsigned long long SimTest::counter(Device device) {
  unsigned long long mj = 0;
  EXPECT_EQ(nv.nvmlDeviceGetTotalEnergyConsumption(device, &mj), nvml::kSuccess);
  return mj;
}

unsigned SimTest::power(Device device) {
  unsigned mw = 0;
  EXPECT_EQ(nv.nvmlDeviceGetPowerUsage(device, &mw), nvml::kSuccess);
  return mw;
}

std::vector<nvml::ProcessUtilizationSample> SimTest::utilization(Device device, unsigned long long last_seen,
                                                                 Return* result) {
  std::vector<nvml::ProcessUtilizationSample> found(100);
  unsigned count = 100;
  const Return code = nv.nvmlDeviceGetProcessUtilization(device, found.data(), &count, last_seen);
  if (result) {
    *result = code;
  } else {
    EXPECT_EQ(code, nvml::kSuccess);
  }
  found.resize(code == nvml::kSuccess ? count : 0);
  return found;
}

std::vector<nvml::ProcessInfo> SimTest::compute(Device device) {
  std::vector<nvml::ProcessInfo> found(64);
  unsigned count = 64;
  EXPECT_EQ(nv.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, found.data()), nvml::kSuccess);
  found.resize(count);
  return found;
}

std::vector<nvml::Sample> SimTest::samples(Device device, unsigned type, unsigned long long last_seen) {
  std::vector<nvml::Sample> found(200);
  unsigned count = 200, value_type = 99;
  EXPECT_EQ(nv.nvmlDeviceGetSamples(device, type, last_seen, &value_type, &count, found.data()), nvml::kSuccess);
  EXPECT_EQ(value_type, static_cast<unsigned>(nvml::kValueUnsignedInt));
  found.resize(count);
  return found;
}

}  // namespace gpuledger::sim_test
