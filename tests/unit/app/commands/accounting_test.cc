#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "app/commands/commands.h"
#include "unit/http/temporary_directory.h"

namespace gpuledger::app {
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

  Outcome run(AccountingAction action, std::vector<std::string> devices = {}) {
    Config config;
    config.command = Command::kAccounting;
    config.accounting = action;
    config.backend = Backend::kNvml;
    config.nvml_library = library_;
    config.gpu_devices = std::move(devices);
    ::testing::internal::CaptureStdout();
    Status status = accounting(config);
    return {std::move(status), ::testing::internal::GetCapturedStdout()};
  }

  http::TemporaryDirectory folder_;
  const std::string library_ = GPU_LEDGER_BINARY_DIR "/sim/libnvidia-ml.so.1";
  void* driver_ = nullptr;
};

TEST_F(AccountingTest, TellsAndSets) {
  open(kGpus);
  auto outcome = run(AccountingAction::kStatus);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.error().message;
  EXPECT_EQ(outcome.output, std::string(kH200) + "disabled\n" + kA100 + kT4 + "enabled\n");

  for (int twice = 0; twice < 2; ++twice) {
    outcome = run(AccountingAction::kOn);
    EXPECT_TRUE(outcome.status.ok());
    EXPECT_EQ(outcome.output, std::string(kH200) + "enabled\n" + kA100 + kT4 + "enabled\n");
  }
  EXPECT_EQ(run(AccountingAction::kStatus).output, outcome.output);

  EXPECT_EQ(run(AccountingAction::kOff).output, std::string(kH200) + "disabled\n" + kA100 + kT4 + "disabled\n");
  EXPECT_EQ(run(AccountingAction::kStatus).output, std::string(kH200) + "disabled\n" + kA100 + kT4 + "disabled\n");
}

TEST_F(AccountingTest, OnlyTheGpusAskedFor) {
  open(kGpus);
  EXPECT_EQ(run(AccountingAction::kOn, {"0"}).output, std::string(kH200) + "enabled\n");
  EXPECT_EQ(run(AccountingAction::kOff, {"GPU-22222222-2222-2222-2222-222222222222"}).output,
            std::string(kT4) + "disabled\n");
  EXPECT_EQ(run(AccountingAction::kStatus).output, std::string(kH200) + "enabled\n" + kA100 + kT4 + "disabled\n");
  const auto missing = run(AccountingAction::kStatus, {"7"});
  ASSERT_FALSE(missing.status.ok());
  EXPECT_THAT(missing.status.error().message, HasSubstr("--gpu-devices names 7"));
}

TEST_F(AccountingTest, WithoutRoot) {
  open(std::string(kGpus) + "events:\n  - {at: 0, do: error, call: nvmlDeviceSetAccountingMode, code: 4}\n");
  EXPECT_TRUE(run(AccountingAction::kStatus).status.ok());
  const auto refused = run(AccountingAction::kOn);
  ASSERT_FALSE(refused.status.ok());
  EXPECT_EQ(refused.status.error().code, Code::kPermission);
  EXPECT_THAT(refused.status.error().message, HasSubstr("GPU 0"));
  EXPECT_THAT(refused.status.error().message, HasSubstr("only root"));
  EXPECT_EQ(refused.output, std::string(kH200) + "failed\n" + kA100 + kT4 + "enabled\n");
  // Nothing to do, so nothing to be allowed.
  EXPECT_TRUE(run(AccountingAction::kOn, {"2"}).status.ok());
}

TEST_F(AccountingTest, OneGpuThatFailsStopsNoOther) {
  open(std::string(kGpus) + "events:\n  - {at: 0, do: error, call: nvmlDeviceGetAccountingMode, code: 999, gpu: 0}\n");
  const auto outcome = run(AccountingAction::kOff);
  ASSERT_FALSE(outcome.status.ok());
  EXPECT_THAT(outcome.status.error().message, HasSubstr("nvmlDeviceGetAccountingMode"));
  EXPECT_EQ(outcome.output, std::string(kH200) + "failed\n" + kA100 + kT4 + "disabled\n");
}

TEST_F(AccountingTest, ADriverThatDoesNotHaveIt) {
  open(std::string(kGpus) + "missing_symbols: [nvmlDeviceSetAccountingMode]\n");
  const auto outcome = run(AccountingAction::kOn);
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.output, std::string(kH200) + "unsupported\n" + kA100 + kT4 + "enabled\n");
}

}  // namespace
}  // namespace gpuledger::app
