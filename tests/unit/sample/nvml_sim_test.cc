// SPDX-License-Identifier: Apache-2.0
// The source over the simulated driver, through the very dlopen a real one takes, in virtual time.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sample/nvml/nvml_source.h"
#include "support/manual_clock.h"

namespace gpuledger::nvml {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int64_t kSimulatedStart = 1'767'225'600;  // the simulator's virtual time begins with 2026

class SimTest : public ::testing::Test {
 protected:
  ~SimTest() override {
    source_.reset();
    if (held_) dlclose(held_);
    for (const char* name : {"GPU_LEDGER_SIM_CLOCK", "GPU_LEDGER_SIM_SCENARIO"}) unsetenv(name);
    if (!scenario_.empty()) std::filesystem::remove(scenario_);
  }

  // Empty text: the built-in mixed node.
  void start(const std::string& text, const std::string& variant = "") {
    setenv("GPU_LEDGER_SIM_CLOCK", "virtual", 1);
    if (!text.empty()) {
      scenario_ = ::testing::TempDir() + "nvml_sim_test." + std::to_string(getpid()) + ".yaml";
      std::ofstream(scenario_) << text;
      setenv("GPU_LEDGER_SIM_SCENARIO", scenario_.c_str(), 1);
    }
    const std::string library = std::string(GPU_LEDGER_BINARY_DIR) + "/sim/" + variant + "libnvidia-ml.so.1";
    // Held by the test too, so that virtual time outlives the source's closing and opening.
    held_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(held_, nullptr) << dlerror();
    set_time_ = reinterpret_cast<void (*)(double)>(dlsym(held_, "gpu_ledger_sim_set_time"));
    ASSERT_NE(set_time_, nullptr);
    NvmlSourceOptions options;
    options.library = library;
    options.least_answer_limit = std::chrono::minutes(1);
    source_ = make_nvml_source(options, clock_);
  }

  SampleBatch sample_at(double seconds, bool scan = false) {
    set_time_(seconds);
    const Nanoseconds since_start(static_cast<int64_t>(seconds * 1e9));
    clock_.set({std::chrono::seconds(1000) + since_start, std::chrono::seconds(kSimulatedStart) + since_start});
    return source_->sample(scan);
  }

  static const ProcessSample* find(const DeviceSample& device, Pid pid) {
    for (const ProcessSample& p : device.processes) {
      if (p.pid == pid) return &p;
    }
    return nullptr;
  }

  ManualClock clock_;
  std::unique_ptr<NvmlSource> source_;

 private:
  void* held_ = nullptr;
  void (*set_time_)(double) = nullptr;
  std::string scenario_;
};

TEST_F(SimTest, TheMixedNodeIsReadWithoutAnError) {
  start("");
  const Result<NvmlProbe> probe = source_->probe();
  ASSERT_TRUE(probe) << probe.error().message;
  EXPECT_THAT(probe->gpus, SizeIs(6));
  SampleBatch batch;
  bool mps_seen = false;
  for (int t = 1; t <= 30; ++t) {
    batch = sample_at(t, t % 10 == 1);
    ASSERT_TRUE(batch.health.up) << batch.health.reason;
    for (const DeviceSample& device : batch.devices) {
      EXPECT_TRUE(device.up);
      for (const ProcessSample& p : device.processes) mps_seen = mps_seen || p.mps_client;
    }
  }
  EXPECT_TRUE(mps_seen);
  EXPECT_TRUE(batch.health.errors.empty()) << batch.health.errors.begin()->first;
  const DeviceSample& mig = batch.devices.at(1);
  EXPECT_EQ(mig.utilization, UtilizationState::kUnsupported);
  ASSERT_THAT(mig.description->mig, SizeIs(3));
  EXPECT_EQ(mig.description->mig[0].profile, "3g.20gb");
  ASSERT_FALSE(mig.processes.empty());
  for (const ProcessSample& p : mig.processes) EXPECT_TRUE(p.mig) << p.pid;
}

constexpr const char* kPair = R"(
seed: 7
gpus: [{model: H200, counter_start_joules: 1000}]
processes:
  - {pid: 501, name: a, gpus: 0, memory: 2GiB, load: {kind: fp32, weight: 3}}
  - {pid: 502, name: b, gpus: 0, memory: 4GiB, load: {kind: fp32, weight: 1}}
)";

class Pair : public SimTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(Pair, SharesAndJoulesAddUpOverAMinute) {
  start(kPair, GetParam());
  SampleBatch first = sample_at(0, true);
  double a = 0, b = 0, watt_seconds = 0;
  SampleBatch batch;
  for (int t = 1; t <= 60; ++t) {
    batch = sample_at(t, t % 10 == 0);
    const DeviceSample& device = batch.devices.at(0);
    ASSERT_EQ(device.utilization, UtilizationState::kKnown);
    ASSERT_THAT(device.processes, SizeIs(2));
    a += find(device, 501)->use.sm.value;
    b += find(device, 502)->use.sm.value;
    watt_seconds += device.power->watts();
  }
  EXPECT_NEAR(a + b, 60, 2) << "the GPU was busy all the time";
  EXPECT_NEAR(a / (a + b), 0.75, 0.1) << "300 tickets";
  EXPECT_EQ(find(batch.devices[0], 502)->memory, Bytes{4ull << 30});
  const double joules = (*batch.devices[0].energy_counter - *first.devices.at(0).energy_counter).joules();
  EXPECT_NEAR(joules, watt_seconds, watt_seconds * 0.03);
  EXPECT_TRUE(batch.health.errors.empty());
}

INSTANTIATE_TEST_SUITE_P(NewAndOldDriver, Pair, ::testing::Values("", "old/"));

double percent(const std::optional<Activity>& activity, Activity::Part part) {
  return activity && activity->parts[part] ? activity->parts[part]->value * 100 : -1;
}

TEST_P(Pair, ActivityIsThereWhereTheDriverHasGpm) {
  start(kPair, GetParam());
  EXPECT_FALSE(sample_at(1, true).devices.at(0).activity);
  for (int t = 2; t <= 10; ++t) {
    const SampleBatch batch = sample_at(t, t % 10 == 0);
    const DeviceSample& device = batch.devices.at(0);
    EXPECT_GT(device.sm_clock_mhz.value_or(0), 0);
    if (std::string(GetParam()) == "old/") {
      EXPECT_FALSE(device.activity);
      continue;
    }
    ASSERT_TRUE(device.activity);
    EXPECT_GT(device.activity->graphics.value().value, 0.9);
    EXPECT_GT(percent(device.activity, Activity::kFp32), 20) << "FP32 is all that runs";
    EXPECT_EQ(percent(device.activity, Activity::kTensor), 0);
    EXPECT_GT(percent(device.activity, Activity::kSm), percent(device.activity, Activity::kFp32));
    EXPECT_TRUE(batch.health.errors.empty());
  }
  EXPECT_FALSE(sample_at(10.05).devices[0].activity) << "too close";
}

TEST_F(SimTest, EveryMigInstanceHasItsOwnActivity) {
  start(R"(
gpus:
  - model: H200
    mig:
      - {gi: 1, ci: 0, profile: 3g.71gb}
      - {gi: 2, ci: 0, profile: 3g.71gb}
      - {gi: 9, ci: 0, profile: 1g.18gb}
processes:
  - {pid: 601, gpus: 0, mig: {gi: 1, ci: 0}, memory: 4GiB, load: gemm}
  - {pid: 602, gpus: 0, mig: {gi: 2, ci: 0}, memory: 4GiB, load: copy}
)");
  sample_at(1, true);
  const SampleBatch batch = sample_at(2);
  const auto& activity = batch.devices.at(0).instance_activity;
  ASSERT_TRUE(activity.contains(1) && activity.contains(2));
  EXPECT_GT(percent(activity.at(1), Activity::kTensor), 20);
  EXPECT_EQ(percent(activity.at(2), Activity::kTensor), 0);
  EXPECT_GT(percent(activity.at(2), Activity::kDram), percent(activity.at(1), Activity::kDram));
  for (const auto& [code, count] : batch.health.errors) ADD_FAILURE() << code << " " << count;
}

// Who lives and dies before the ring of utilization samples, 14 s long, is read again.
TEST_F(SimTest, AccountingTellsOfALifeThatTheRingForgot) {
  start(R"(
gpus: [{model: H200, accounting: true}]
processes:
  - {pid: 700, gpus: 0, memory: 1GiB, load: idle}
  - {pid: 701, gpus: 0, memory: 3GiB, start: 5, end: 9, load: fp32}
)");
  ASSERT_THAT(sample_at(1, true).devices.at(0).processes, SizeIs(1));
  const SampleBatch batch = sample_at(41, true);
  const ProcessSample* caught = find(batch.devices.at(0), 701);
  ASSERT_NE(caught, nullptr);
  EXPECT_FALSE(caught->listed);
  EXPECT_EQ(caught->memory, Bytes{3ull << 30});
  EXPECT_NEAR(caught->use.sm.value * 40, 4, 0.3) << "four seconds on the GPU";
  EXPECT_EQ(find(sample_at(51, true).devices.at(0), 701), nullptr);
}

TEST_F(SimTest, QuirksOfRealDriversAreSurvived) {
  start(std::string(kPair) +
        "quirks: {process_entry_size: 32, utilization_garbage: true, "
        "list_grows_between_calls: true}\n");
  SampleBatch batch;
  for (int t = 1; t <= 10; ++t) {
    batch = sample_at(t, true);
    const DeviceSample& device = batch.devices.at(0);
    ASSERT_TRUE(device.up);
    ASSERT_NE(find(device, 501), nullptr);
    EXPECT_EQ(find(device, 501)->memory, Bytes{2ull << 30});
    double sum = 0;
    for (const ProcessSample& p : device.processes) sum += p.use.sm.value;
    EXPECT_LE(sum, 1.01);
  }
  EXPECT_GT(batch.health.errors["garbage"], 0u);
  EXPECT_THAT(batch.health.errors, SizeIs(1));
}

TEST_F(SimTest, LossReloadAndXidsAsAScenarioSays) {
  start(R"(
gpus: [{model: H200}, {model: T4}]
events:
  - {do: gpu_lost, gpu: 1, at: 3}
  - {do: gpu_back, gpu: 1, at: 6}
  - {do: xid, gpu: 0, xid: 31, at: 7.5}
  - {do: driver_reload, at: 10, for: 3}
)");
  std::vector<int> down, lost, xids;
  for (int t = 1; t <= 30; ++t) {
    const SampleBatch batch = sample_at(t, t % 10 == 1);
    ASSERT_THAT(batch.devices, SizeIs(2)) << t;
    if (!batch.health.up) {
      down.push_back(t);
    } else if (!batch.devices[1].up) {
      lost.push_back(t);
    }
    if (!batch.devices[0].xids.empty()) xids.push_back(t);
  }
  EXPECT_THAT(lost, ::testing::ElementsAre(3, 4, 5));
  EXPECT_THAT(xids, ::testing::ElementsAre(8));
  ASSERT_FALSE(down.empty());
  EXPECT_EQ(down.front(), 10);
  EXPECT_LE(down.back(), 20);
}

TEST_F(SimTest, ALibraryWithoutWhatIsRequiredIsRefusedByName) {
  start("", "broken/");
  const Result<NvmlProbe> probe = source_->probe();
  ASSERT_FALSE(probe);
  EXPECT_THAT(probe.error().message, HasSubstr("lacks nvmlDeviceGetCount_v2, nvmlDeviceGetHandleByIndex_v2"));
}

}  // namespace
}  // namespace gpuledger::nvml
