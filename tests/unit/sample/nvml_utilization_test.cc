// SPDX-License-Identifier: Apache-2.0
#include "source_fixture.h"

namespace gpuledger::nvml {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr const char* kNewer = "nvmlDeviceGetProcessesUtilizationInfo";
constexpr const char* kOlder = "nvmlDeviceGetProcessUtilization";

class UtilizationTest : public SourceTest {
 protected:
  UtilizationTest() { gpu().compute = {{10, 1, kNoInstance, kNoInstance}, {20, 1, kNoInstance, kNoInstance}}; }
  void rest(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      work(0, 0);
      sample();
    }
  }
  void set_wall_clock(Nanoseconds by) { clock_.set({clock_.now().steady, clock_.now().wall + by}); }
  UtilizationState state(const SampleBatch& batch) { return batch.devices.at(0).utilization; }
};

TEST_F(UtilizationTest, MeansAreSinceTheNewestSampleSeen) {
  work(10, 90);
  EXPECT_DOUBLE_EQ(sm(sample(), 10), 0.9);
  work(20, 50, 600ms);
  clock_.advance(600ms);
  work(10, 80, 400ms);
  const SampleBatch batch = sample(false, 400ms);
  EXPECT_EQ(state(batch), UtilizationState::kKnown);
  EXPECT_DOUBLE_EQ(sm(batch, 20), 0.3);
  EXPECT_DOUBLE_EQ(sm(batch, 10), 0.32);
  EXPECT_DOUBLE_EQ(find(batch.devices[0], 10)->use.memory.value, 0.16);
  EXPECT_EQ(nvml_.called(kOlder), 0);
}

TEST_F(UtilizationTest, TheFirstReplySpeaksForOneIntervalAndNotForTheDriversHistory) {
  work(10, 100, 13s);  // long before we looked
  clock_.advance(13s);
  work(20, 60, 1s);
  const SampleBatch batch = sample();
  EXPECT_DOUBLE_EQ(sm(batch, 20), 0.6);
  EXPECT_DOUBLE_EQ(sm(batch, 10), 0);
  EXPECT_THAT(nvml_.asked_since, SizeIs(2));
  EXPECT_EQ(nvml_.asked_since[0], 0);
}

TEST_F(UtilizationTest, AChangedIntervalCountsForWhatTheFirstReplySpeaksFor) {
  source().change_interval(4s);
  work(10, 80, 2s);
  clock_.advance(2s);
  work(20, 60, 2s);
  const SampleBatch batch = sample(false, 2s);
  EXPECT_DOUBLE_EQ(sm(batch, 10), 0.4);
  EXPECT_DOUBLE_EQ(sm(batch, 20), 0.3);
}

TEST_F(UtilizationTest, NobodyActiveIsKnownIdleness) {
  const SampleBatch batch = sample();
  EXPECT_EQ(state(batch), UtilizationState::kKnown);
  EXPECT_DOUBLE_EQ(sm(batch, 10), 0);
  EXPECT_TRUE(batch.health.errors.empty());
}

class ClockDomain : public UtilizationTest, public ::testing::WithParamInterface<int64_t> {};

// The driver's clock counts since 1970 or since boot; either way idle time must not dilute what comes after it.
TEST_P(ClockDomain, WorkAfterIdlenessIsNotDiluted) {
  work(10, 100, 1s, GetParam());
  EXPECT_DOUBLE_EQ(sm(sample(), 10), 1);
  for (int i = 0; i < 8; ++i) {
    work(0, 0, 1s, GetParam());
    EXPECT_DOUBLE_EQ(sm(sample(), 10), 0);
  }
  work(10, 80, 1s, GetParam());
  EXPECT_NEAR(sm(sample(), 10), 0.8, 0.02);
  work(10, 60, 1s, GetParam());
  EXPECT_NEAR(sm(sample(), 10), 0.6, 0.01);
}

INSTANTIATE_TEST_SUITE_P(SinceEpochOrBoot, ClockDomain, ::testing::Values(0, 1'699'990'000'000'000));

TEST_F(UtilizationTest, PuttingIdleTimeBackNeverMakesMoreThanAllTheTime) {
  work(10, 100);
  sample();
  const SampleBatch idle = sample();
  EXPECT_DOUBLE_EQ(sm(idle, 10), 0);
  clock_.advance(-1s);
  work(10, 100, 1s);  // only now does the driver say that this second was not idle
  clock_.advance(1s);
  work(10, 100, 600ms);
  clock_.advance(600ms);
  work(20, 100, 400ms);
  const SampleBatch batch = sample(false, 400ms);
  EXPECT_LE(sm(batch, 10) + sm(batch, 20), 1.0 + 1e-9);
  EXPECT_GT(sm(batch, 10) + sm(batch, 20), 0.9);
}

TEST_F(UtilizationTest, SamplesHandedOutLateAreNotLost) {
  work(10, 100);
  sample();
  sample();  // the sampler is late: nobody
  gpu().ring.push_back({wall_us() - 500'000, 20, 100});
  EXPECT_GT(sm(sample(), 20), 0);
}

TEST_F(UtilizationTest, AClockSetBackIsNoticed) {
  work(10, 100);
  sample();
  const int64_t hour = 3'600'000'000;
  int blind = 0;
  SampleBatch batch;
  for (int i = 0; i < 40; ++i) {
    work(20, 70, 1s, hour);
    batch = sample();
    if (sm(batch, 20) == 0) ++blind;
  }
  EXPECT_LE(blind, 32);
  EXPECT_NEAR(sm(batch, 20), 0.7, 0.01);
}

// The driver's clock goes with ours. Until its history is all new it cannot be known who worked, but nobody may be
// called idle.
TEST_F(UtilizationTest, AWallClockSetBackMakesNobodyIdle) {
  for (const Nanoseconds step : {-5s, -3600s}) {
    for (int i = 0; i < 20; ++i) {
      work(10, 100);
      sample();
    }
    set_wall_clock(step);
    int blind = 0;
    SampleBatch batch;
    for (int i = 0; i < 20; ++i) {
      work(10, 40);
      batch = sample();
      if (state(batch) == UtilizationState::kKnown) { EXPECT_GT(sm(batch, 10), 0) << i << " s after " << step.count(); }
      if (state(batch) == UtilizationState::kFailed) ++blind;
    }
    EXPECT_LE(blind, 15);
    EXPECT_EQ(state(batch), UtilizationState::kKnown);
    EXPECT_DOUBLE_EQ(sm(batch, 10), 0.4);
    EXPECT_GT(batch.health.errors["clock_set"], 0);
  }
}

// The driver has a clock of its own, as with one that counts since boot.
TEST_F(UtilizationTest, ADriverThatDoesNotFollowTheWallClockIsReadOn) {
  for (const Nanoseconds step : {-3600s, +7200s, -5s, +5s}) {
    work(10, 100);
    sample();
    rest(3);  // so that the offset is used
    set_wall_clock(step);
    const int64_t offset = step.count() / 1000;
    for (int i = 0; i < 40; ++i) {
      work(10, 40, 1s, offset);
      const SampleBatch batch = sample();
      ASSERT_EQ(state(batch), UtilizationState::kKnown);
      ASSERT_NEAR(sm(batch, 10), 0.4, 0.02) << i << " s after " << step.count();
    }
    set_wall_clock(-step);
    gpu().ring.clear();
    source_.reset();
  }
}

TEST_F(UtilizationTest, AWallClockSetForwardIsFollowed) {
  for (const bool idle : {false, true}) {
    work(10, 100);
    sample();
    if (idle) rest(3);
    set_wall_clock(3600s);
    for (int i = 0; i < 40; ++i) {
      work(10, 40);
      const SampleBatch batch = sample();
      ASSERT_EQ(state(batch), UtilizationState::kKnown);
      ASSERT_NEAR(sm(batch, 10), 0.4, 0.02) << i;
    }
  }
}

TEST_F(UtilizationTest, ASampleFromTheFutureIsGarbageAndBlindsNobody) {
  const auto future = static_cast<unsigned long long>(wall_us() + 3'600'000'000);
  for (const bool from_the_start : {false, true}) {
    gpu().junk.clear();
    work(10, 40);
    if (!from_the_start) sample();
    gpu().junk = {{future, 20, 50, 0, 0, 0, 0, 0}};
    SampleBatch batch;
    for (int i = 0; i < 5; ++i) {
      if (!from_the_start || i > 0) work(10, 40);
      batch = sample();
      EXPECT_DOUBLE_EQ(sm(batch, 10), 0.4) << i;
      EXPECT_DOUBLE_EQ(sm(batch, 20), 0) << i;
    }
    EXPECT_EQ(batch.health.errors["garbage"], 5);
    source_.reset();
  }
}

TEST_F(UtilizationTest, GarbageIsDroppedAndCounted) {
  work(10, 40);
  sample();
  const auto now = static_cast<unsigned long long>(wall_us() + 900'000);
  work(10, 40);
  gpu().junk = {
      {now, 20, 3'000'000, 0, 0, 0, 0, 0},  // percent
      {now, 4'000'000'000, 10, 0, 0, 0, 0, 0},
      {now, 0, 50, 0, 0, 0, 0, 0},
      {1, 20, 50, 0, 0, 0, 0, 0},  // old
      {now, 30, 1, 2, 3, 4, 5, 6},
  };
  const SampleBatch batch = sample();
  EXPECT_EQ(batch.health.errors.at("garbage"), 2u);
  EXPECT_DOUBLE_EQ(sm(batch, 10), 0.4);
  EXPECT_DOUBLE_EQ(sm(batch, 20), 0);
  const ProcessSample* p = find(batch.devices[0], 30);
  ASSERT_NE(p, nullptr);
  EXPECT_DOUBLE_EQ(p->use.sm.value, 0.01);
  EXPECT_DOUBLE_EQ(p->use.memory.value, 0.02);
  EXPECT_DOUBLE_EQ(p->use.encoder.value, 0.03);
  EXPECT_DOUBLE_EQ(p->use.decoder.value, 0.04);
  EXPECT_DOUBLE_EQ(p->use.jpeg.value, 0.05);
  EXPECT_DOUBLE_EQ(p->use.ofa.value, 0.06);
  EXPECT_EQ(find(batch.devices[0], 0), nullptr);
}

TEST_F(UtilizationTest, TheOlderCallStandsInWhereTheNewerIsMissing) {
  nvml_.missing = {kNewer};
  work(10, 70);
  EXPECT_DOUBLE_EQ(sm(sample(), 10), 0.7);
}

class NewerRefused : public UtilizationTest, public ::testing::WithParamInterface<Return> {};

TEST_P(NewerRefused, TheOlderCallIsTakenAndRemembered) {
  gpu().fails[kNewer] = GetParam();
  for (int i = 0; i < 3; ++i) {
    work(10, 70);
    const SampleBatch batch = sample();
    EXPECT_DOUBLE_EQ(sm(batch, 10), 0.7);
    EXPECT_TRUE(batch.health.errors.empty());
  }
  EXPECT_EQ(nvml_.called(kNewer), 1);
}

INSTANTIATE_TEST_SUITE_P(Codes, NewerRefused,
                         ::testing::Values(kNotSupported, kFunctionNotFound, kArgumentVersionMismatch));

TEST_F(UtilizationTest, TheChoiceIsPerDevice) {
  gpu().fails[kNewer] = kNotSupported;
  nvml_.add_gpu("GPU-1").fails[kOlder] = kNotSupported;
  for (int i = 0; i < 3; ++i) {
    const SampleBatch batch = sample();
    EXPECT_EQ(batch.devices[0].utilization, UtilizationState::kKnown);
    EXPECT_EQ(batch.devices[1].utilization, UtilizationState::kKnown);
  }
}

TEST_F(UtilizationTest, NeitherCallIsUnsupported) {
  gpu().fails[kNewer] = kNotSupported;
  gpu().fails[kOlder] = kNotSupported;
  EXPECT_EQ(state(sample()), UtilizationState::kUnsupported);
  const SampleBatch batch = sample();
  EXPECT_EQ(state(batch), UtilizationState::kUnsupported);
  EXPECT_TRUE(batch.health.errors.empty());
  EXPECT_EQ(nvml_.called(kNewer) + nvml_.called(kOlder), 2);
}

TEST_F(UtilizationTest, AnErrorIsFailedAndLosesNoSamples) {
  work(10, 50);
  sample();
  gpu().fails[kNewer] = kUnknown;
  work(10, 100);
  SampleBatch batch = sample();
  EXPECT_EQ(state(batch), UtilizationState::kFailed);
  EXPECT_TRUE(batch.devices[0].up);
  EXPECT_EQ(batch.health.errors.at("internal"), 1u);
  EXPECT_EQ(nvml_.called(kOlder), 0) << "a failure is no reason to change the call";
  gpu().fails.clear();
  work(10, 50);
  batch = sample();
  EXPECT_EQ(state(batch), UtilizationState::kKnown);
  EXPECT_DOUBLE_EQ(sm(batch, 10), 0.75);
}

TEST_F(UtilizationTest, ReplyThatOutgrowsTheBuffer) {
  const auto at = static_cast<unsigned long long>(wall_us() + 1);
  for (unsigned pid = 1; pid <= 400; ++pid) gpu().junk.push_back({at, pid, 7, 0, 0, 0, 0, 0});
  const SampleBatch batch = sample();
  EXPECT_DOUBLE_EQ(sm(batch, 400), 0.07);
  EXPECT_THAT(batch.devices[0].processes, SizeIs(400));
  EXPECT_TRUE(batch.health.errors.empty());
}

}  // namespace
}  // namespace gpuledger::nvml
