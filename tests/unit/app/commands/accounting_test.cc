// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "app/config/config.h"
#include "unit/http/temporary_directory.h"

namespace gpuledger::app {

Status accounting_command(const Config& config, const ConfigSources& sources);

namespace {

using ::testing::HasSubstr;

constexpr const char* kGpus = R"(
gpus:
  - {model: H200, uuid: GPU-00000000-0000-0000-0000-000000000000}
  - {model: A100-40GB, uuid: GPU-11111111-1111-1111-1111-111111111111, mig: [{gi: 1, ci: 0, profile: 3g.20gb}]}
  - {model: T4, uuid: GPU-22222222-2222-2222-2222-222222222222, accounting: true}
)";
constexpr const char* kH200 = "0\tGPU-00000000-0000-0000-0000-000000000000\tNVIDIA H200\t";
constexpr const char* kA100 = "1\tGPU-11111111-1111-1111-1111-111111111111\tNVIDIA A100-SXM4-40GB\tunsupported\n";
constexpr const char* kT4 = "2\tGPU-22222222-2222-2222-2222-222222222222\tTesla T4\t";

struct Outcome {
  Status status;
  std::string output;
};

// The simulated driver is held open, as a real one stays loaded between two programs.
class AccountingTest : public ::testing::Test {
 protected:
  void open(const std::string& scenario) {
    ::setenv("NVML_SIM_SCENARIO", folder_.write("scenario.yaml", scenario).c_str(), 1);
    driver_ = ::dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(driver_, nullptr) << ::dlerror();
  }
  ~AccountingTest() override {
    if (driver_ != nullptr) ::dlclose(driver_);
    ::unsetenv("NVML_SIM_SCENARIO");
  }

  Outcome run(const std::string& action, std::vector<std::string> devices = {}) {
    Config config;
    config.argument = action;
    config.backend = Backend::kNvml;
    config.nvml_library = library_;
    config.gpu_devices = std::move(devices);
    ::testing::internal::CaptureStdout();
    Status status = accounting_command(config, {});
    return {std::move(status), ::testing::internal::GetCapturedStdout()};
  }

  http::TemporaryDirectory folder_;
  const std::string library_ = GPU_LEDGER_BINARY_DIR "/sim/libnvidia-ml.so.1";
  void* driver_ = nullptr;
};

TEST_F(AccountingTest, TellsAndSets) {
  open(kGpus);
  auto outcome = run("status");
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.error().message;
  EXPECT_EQ(outcome.output, std::string(kH200) + "disabled\n" + kA100 + kT4 + "enabled\n");

  for (int twice = 0; twice < 2; ++twice) {
    outcome = run("on");
    EXPECT_TRUE(outcome.status.ok());
    EXPECT_EQ(outcome.output, std::string(kH200) + "enabled\n" + kA100 + kT4 + "enabled\n");
  }
  EXPECT_EQ(run("status").output, outcome.output);

  EXPECT_EQ(run("off").output, std::string(kH200) + "disabled\n" + kA100 + kT4 + "disabled\n");
  EXPECT_EQ(run("status").output, std::string(kH200) + "disabled\n" + kA100 + kT4 + "disabled\n");
}

TEST_F(AccountingTest, OnlyTheGpusAskedFor) {
  open(kGpus);
  EXPECT_EQ(run("on", {"0"}).output, std::string(kH200) + "enabled\n");
  EXPECT_EQ(run("off", {"GPU-22222222-2222-2222-2222-222222222222"}).output, std::string(kT4) + "disabled\n");
  EXPECT_EQ(run("status").output, std::string(kH200) + "enabled\n" + kA100 + kT4 + "disabled\n");
  const auto missing = run("status", {"7"});
  ASSERT_FALSE(missing.status.ok());
  EXPECT_THAT(missing.status.error().message, HasSubstr("--gpu-devices names 7"));
}

TEST_F(AccountingTest, WithoutRoot) {
  open(std::string(kGpus) + "events:\n  - {at: 0, do: error, call: nvmlDeviceSetAccountingMode, code: 4}\n");
  EXPECT_TRUE(run("status").status.ok());
  const auto refused = run("on");
  ASSERT_FALSE(refused.status.ok());
  EXPECT_EQ(refused.status.error().code, Code::kPermission);
  EXPECT_THAT(refused.status.error().message, HasSubstr("GPU 0"));
  EXPECT_THAT(refused.status.error().message, HasSubstr("only root"));
  EXPECT_EQ(refused.output, std::string(kH200) + "failed\n" + kA100 + kT4 + "enabled\n");
  // Nothing to do, so nothing to be allowed.
  EXPECT_TRUE(run("on", {"2"}).status.ok());
}

TEST_F(AccountingTest, OneGpuThatFailsStopsNoOther) {
  open(std::string(kGpus) + "events:\n  - {at: 0, do: error, call: nvmlDeviceGetAccountingMode, code: 999, gpu: 0}\n");
  const auto outcome = run("off");
  ASSERT_FALSE(outcome.status.ok());
  EXPECT_THAT(outcome.status.error().message, HasSubstr("nvmlDeviceGetAccountingMode"));
  EXPECT_EQ(outcome.output, std::string(kH200) + "failed\n" + kA100 + kT4 + "disabled\n");
}

TEST_F(AccountingTest, ADriverThatDoesNotHaveIt) {
  open(std::string(kGpus) + "missing_symbols: [nvmlDeviceSetAccountingMode]\n");
  const auto outcome = run("on");
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.output, std::string(kH200) + "unsupported\n" + kA100 + kT4 + "enabled\n");
}

}  // namespace
}  // namespace gpuledger::app
