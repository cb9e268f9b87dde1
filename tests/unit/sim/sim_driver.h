// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client_abi.h"

namespace gpuledger::nvml {

// Every function of the simulated driver, as a client has it after dlopen and dlsym. Inside this namespace
// because the lists name its types.
struct SimFunctions {
#define NVML_FUNCTION(need, result, name, parameters) result(*name) parameters = nullptr;
#include "nvml_client_functions.inc"
#include "sample/nvml/nvml_functions.inc"
#undef NVML_FUNCTION
  void (*set_time)(double) = nullptr;
  const char* (*error)() = nullptr;
  void (*reset)() = nullptr;
};

}  // namespace gpuledger::nvml

namespace gpuledger::sim_test {

using nvml::Device;
using nvml::Return;

std::string sim_library(const std::string& folder = "");

// Loads the library once and gives every test a node of its own, in virtual time.
class SimTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Writes the scenario, opens the driver with it. Time is 0.
  void open(const std::string& scenario);
  // As open, but returns what nvmlInit said.
  Return try_open(const std::string& scenario);
  Return try_open_file(const std::string& path);
  void at(double seconds) { nv.set_time(seconds); }

  Device gpu(unsigned index = 0);
  unsigned long long counter(Device device);
  unsigned power(Device device);
  std::vector<nvml::ProcessUtilizationSample> utilization(Device device, unsigned long long last_seen,
                                                          Return* result = nullptr);
  std::vector<nvml::ProcessInfo> compute(Device device);
  std::vector<nvml::Sample> samples(Device device, unsigned type, unsigned long long last_seen = 0);

  static unsigned long long wall(double seconds) {
    return 1767225600ull * 1000000 + static_cast<unsigned long long>(seconds * 1e6 + 0.5);
  }

  static nvml::SimFunctions nv;
  std::string folder_;
};

}  // namespace gpuledger::sim_test
