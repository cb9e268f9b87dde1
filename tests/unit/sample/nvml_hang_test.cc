// SPDX-License-Identifier: Apache-2.0
// One GPU that hangs in the driver until the test lets it go.
#include <thread>

#include "source_fixture.h"
#include "support/eventually.h"

namespace gpuledger::nvml {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kCall = "nvmlDeviceGetPowerUsage";

class HangTest : public SourceTest {
 protected:
  HangTest() {
    gpu().energy_mj = 10;
    nvml_.add_gpu("GPU-1").energy_mj = 20;
    options_.least_answer_limit = 3s;  // so long a cycle waits for the GPU that hangs, and GPU 1 has time to answer
    options_.sample_interval = kLong;
  }
  ~HangTest() override { nvml_.let_go(); }

  // The cycle in which a GPU begins to hang. All others have more patience than the test: they do not wait for it.
  SampleBatch sample_hanging() {
    source().change_interval(1ms);
    SampleBatch batch = sample();
    source().change_interval(kLong);
    return batch;
  }
  // Cycles until GPU-0 is up again.
  SampleBatch sample_until_up() {
    SampleBatch batch;
    EXPECT_TRUE(eventually([&] {
      batch = sample();
      return batch.devices.at(0).up;
    }));
    return batch;
  }
  bool wait_until_shut_down(int expected) {
    return eventually([&] {
      const std::lock_guard lock(nvml_.mutex);
      return nvml_.initialized == expected;
    });
  }

 private:
  static constexpr Nanoseconds kLong = 10min;
};

TEST_F(HangTest, TheOtherGpuIsHeardInTimeAndTheHungOneComesBack) {
  ASSERT_TRUE(sample(true).devices.at(0).up);
  nvml_.hang(gpu(0), kCall);
  gpu(1).energy_mj = 30;
  SampleBatch batch = sample_hanging();
  ASSERT_THAT(batch.devices, SizeIs(2));
  EXPECT_FALSE(batch.devices[0].up);
  EXPECT_FALSE(batch.devices[0].energy_counter) << "read before the call that hangs, but half an answer is none";
  EXPECT_EQ(batch.devices[0].description->model, "NVIDIA Fake");
  EXPECT_TRUE(batch.devices[1].up);
  EXPECT_EQ(batch.devices[1].energy_counter, Energy::millijoules(30));
  EXPECT_TRUE(batch.health.up);
  EXPECT_THAT(batch.health.reason, HasSubstr("GPU-0: does not answer"));
  EXPECT_EQ(batch.health.errors.at("timeout"), 1u);

  // Not asked again, and counted once.
  nvml_.calls.erase("nvmlDeviceGetHandleByIndex_v2");
  for (int i = 0; i < 5; ++i) {
    batch = sample(i == 3);
    EXPECT_FALSE(batch.devices.at(0).up);
    EXPECT_TRUE(batch.devices.at(1).up);
  }
  EXPECT_EQ(nvml_.called(kCall), 2 + 2 + 5);
  EXPECT_EQ(nvml_.called("nvmlDeviceGetHandleByIndex_v2"), 1) << "the other's, at the scan";
  EXPECT_EQ(batch.health.errors.at("timeout"), 1u);
  EXPECT_THAT(batch.health.reason, HasSubstr("GPU-0: does not answer"));

  gpu(1).compute = {{7, 1, kNoInstance, kNoInstance}};
  nvml_.let_go();
  batch = sample_until_up();
  EXPECT_TRUE(batch.devices.at(0).up);
  EXPECT_EQ(batch.devices[0].energy_counter, Energy::millijoules(10));
  EXPECT_EQ(batch.health.reason, "");
  EXPECT_EQ(batch.health.errors.at("timeout"), 1u);
}

TEST_F(HangTest, ALateAnswerIsDropped) {
  sample(true);
  nvml_.hang(gpu(0), kCall);
  sample_hanging();
  const int before = nvml_.called("nvmlDeviceGetTotalEnergyConsumption");
  nvml_.let_go();
  const SampleBatch batch = sample_until_up();
  EXPECT_TRUE(batch.devices.at(0).up);
  EXPECT_TRUE(batch.devices[0].gpu_utilization);
  // Of a new question: the energy was asked for again, not taken from the call that hung.
  EXPECT_GE(nvml_.called("nvmlDeviceGetTotalEnergyConsumption"), before + 2);
}

TEST_F(HangTest, TheDriverIsNotShutDownUnderARunningCall) {
  sample(true);
  nvml_.hang(gpu(0), kCall);
  sample_hanging();
  source().release();
  EXPECT_EQ(nvml_.called("nvmlShutdown"), 0);
  EXPECT_EQ(nvml_.called("nvmlEventSetFree"), 0);
  EXPECT_FALSE(sample().health.up);

  // Taken back while it still hangs: the other GPU is there, this one not yet.
  source().resume();
  SampleBatch batch = sample();
  EXPECT_FALSE(batch.devices.at(0).up);
  EXPECT_TRUE(batch.devices.at(1).up);
  nvml_.let_go();
  batch = sample_until_up();
  EXPECT_TRUE(batch.devices.at(0).up);
  EXPECT_EQ(nvml_.called("nvmlShutdown"), 1) << "by the thread that hung, when it was done";
  EXPECT_TRUE(wait_until_shut_down(1));
}

TEST_F(HangTest, TheSourceMayGoWhileAGpuHangs) {
  sample(true);
  nvml_.hang(gpu(0), kCall);
  sample_hanging();
  source_.reset();
  EXPECT_EQ(nvml_.called("nvmlShutdown"), 0);
  EXPECT_THAT(nvml_.gpm_samples, SizeIs(2)) << "the hung GPU's";
  nvml_.let_go();
  EXPECT_TRUE(wait_until_shut_down(0));
  const std::lock_guard lock(nvml_.mutex);
  EXPECT_THAT(nvml_.gpm_samples, SizeIs(0));
}

TEST_F(HangTest, GpusAreAskedSideBySide) {
  sample(true);
  nvml_.hang(gpu(0), kCall);
  const int before = nvml_.called("nvmlDeviceGetTemperature");
  std::jthread waiting([this] { sample(); });
  ASSERT_TRUE(nvml_.wait_for_hang());
  EXPECT_TRUE(eventually([&] { return nvml_.called("nvmlDeviceGetTemperature") == before + 1; }))
      << "the second GPU, while the first one still works";
  nvml_.let_go();
  waiting.join();
}

}  // namespace
}  // namespace gpuledger::nvml
