// SPDX-License-Identifier: Apache-2.0
#include "sample/patient_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>

#include "support/eventually.h"
#include "support/manual_clock.h"

namespace gpuledger {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct Script {
  std::atomic<bool> hang = false;
  std::atomic<int> samples = 0;
  std::atomic<int> closed = 0;
  std::atomic<bool> released = false;
  std::atomic<bool> hang_readings = false;
  std::function<void()> during_sample = [] {};

  void wait() const {
    (void)eventually([this] { return !hang; });
  }
};

class HangingSource final : public GpuSource {
 public:
  explicit HangingSource(std::shared_ptr<Script> script) : script_(std::move(script)) {
    auto description = std::make_shared<DeviceDescription>();
    description->uuid = {"GPU-0"};
    description->model = "Test GPU";
    description_ = std::move(description);
  }
  ~HangingSource() override { ++script_->closed; }

  SampleBatch sample(bool) override {
    script_->wait();
    script_->during_sample();
    SampleBatch batch;
    batch.health.source = "nvml";
    batch.health.up = true;
    batch.health.errors["unavailable"] = 3;
    DeviceSample& device = batch.devices.emplace_back();
    device.description = description_;
    device.up = true;
    device.xids = {static_cast<uint64_t>(++script_->samples)};
    return batch;
  }
  std::vector<Pid> glance() override {
    script_->wait();
    return {7};
  }
  void change_readings(const Readings&) override {
    (void)eventually([this] { return !script_->hang_readings; });
  }
  void release() override { script_->released = true; }
  void resume() override { script_->released = false; }

 private:
  std::shared_ptr<Script> script_;
  std::shared_ptr<const DeviceDescription> description_;
};

class PatientSourceTest : public ::testing::Test {
 protected:
  ~PatientSourceTest() override { script_->hang = script_->hang_readings = false; }
  std::unique_ptr<PatientSource> open() {
    return *PatientSource::open([this](const Clock&) { return std::make_unique<HangingSource>(script_); }, "nvml",
                                kLong, clock_, kShort);
  }

  // An interval of kLong is more patience than the test has: no call may wait for one that hangs. With one of no length
  // kShort counts.
  static constexpr Nanoseconds kLong = 1h;
  static constexpr Nanoseconds kShort = 50ms;

  std::shared_ptr<Script> script_ = std::make_shared<Script>();
  ManualClock clock_;
};

TEST_F(PatientSourceTest, HandsOnWhatTheSourceSays) {
  auto source = open();
  const SampleBatch batch = source->sample(true);
  EXPECT_TRUE(batch.health.up);
  EXPECT_TRUE(batch.devices.at(0).up);
  EXPECT_EQ(source->glance(), std::vector<Pid>{7});
  source->release();
  EXPECT_TRUE(script_->released);
  source->resume();
  (void)source->sample(false);
  EXPECT_FALSE(script_->released);
  source.reset();
  EXPECT_EQ(script_->closed, 1);
}

TEST_F(PatientSourceTest, ADriverThatHangsIsDownAndComesBack) {
  auto source = open();
  (void)source->sample(true);
  script_->hang = true;
  source->change_interval(0s);
  SampleBatch batch = source->sample(true);
  ASSERT_EQ(batch.devices.size(), 1u);
  EXPECT_EQ(batch.devices[0].description->model, "Test GPU");
  EXPECT_FALSE(batch.devices[0].up);
  EXPECT_FALSE(batch.health.up);
  EXPECT_FALSE(batch.processes_scanned);
  EXPECT_THAT(batch.health.reason, HasSubstr("does not answer"));
  EXPECT_EQ(batch.health.errors.at("timeout"), 1u);
  EXPECT_EQ(batch.health.errors.at("unavailable"), 3u);
  // It is not waited for again.
  source->change_interval(kLong);
  EXPECT_FALSE(source->sample(true).health.up);
  EXPECT_TRUE(source->glance().empty());
  script_->hang = false;
  ASSERT_TRUE(eventually([&] { return (batch = source->sample(true)).health.up; }));
  EXPECT_EQ(batch.health.errors.at("timeout"), 1u);
  // The Xid of the answer that came too late is not lost.
  EXPECT_THAT(batch.devices.at(0).xids, ::testing::IsSupersetOf({2u, 3u}));
}

TEST_F(PatientSourceTest, AnAnswerBetweenTheWaitAndTheDecisionKeepsItsXids) {
  auto source = open();
  source->change_interval(0s);
  // The wait ends without an idle thread, although the thread has answered by then.
  script_->hang_readings = true;
  script_->during_sample = [&] { source->change_readings({}); };
  std::vector<uint64_t> seen;
  const auto sample = [&] {
    const SampleBatch batch = source->sample(true);
    for (const DeviceSample& device : batch.devices) seen.insert(seen.end(), device.xids.begin(), device.xids.end());
    return batch.health.up;
  };
  (void)sample();
  script_->hang_readings = false;
  source->change_interval(kLong);
  ASSERT_TRUE(eventually(sample));
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1u), 1);
}

TEST_F(PatientSourceTest, ATaskThatHangsAtTheStartIsWaitedForWhileTheRestGoesOn) {
  auto source = open();
  script_->hang = true;
  EXPECT_FALSE(source->attempt([this](GpuSource&) { script_->wait(); }, kShort));
  const SampleBatch batch = source->sample(true);
  EXPECT_TRUE(batch.devices.empty());
  EXPECT_EQ(batch.health.source, "nvml");
  EXPECT_THAT(batch.health.reason, HasSubstr("does not answer"));
  script_->hang = false;
  EXPECT_TRUE(eventually([&] { return source->sample(true).health.up; }));
}

TEST_F(PatientSourceTest, AHangKeepsNobodyFromEnding) {
  auto source = open();
  script_->hang = true;
  EXPECT_FALSE(source->attempt([this](GpuSource&) { script_->wait(); }, kShort));
  source.reset();
  EXPECT_EQ(script_->closed, 0);
  script_->hang = false;
  EXPECT_TRUE(eventually([&] { return script_->closed == 1; })) << "closed by the thread that was left to itself";
}

}  // namespace
}  // namespace gpuledger
