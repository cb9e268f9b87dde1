// SPDX-License-Identifier: Apache-2.0
#include "attribute/books/idle_tracker.h"

#include <gtest/gtest.h>

namespace gpuledger::attribute {
namespace {

using std::chrono::seconds;

DeviceSample device(UtilizationState utilization = UtilizationState::kKnown) {
  DeviceSample sample;
  sample.up = true;
  sample.utilization = utilization;
  return sample;
}

EngineUse use_of(double sm, double encoder = 0) {
  EngineUse use;
  use.sm = Ratio{sm};
  use.encoder = Ratio{encoder};
  return use;
}

TEST(IdleTracker, IdleAfterTwoQuietEvaluationsCountedFromTheLastActivity) {
  IdleTracker tracker(seconds(0));
  tracker.observe(device(), use_of(0.5), seconds(3));
  tracker.observe(device(), use_of(0), seconds(5));
  tracker.evaluate();  // saw work
  EXPECT_FALSE(tracker.state(seconds(5)).idle);
  tracker.observe(device(), use_of(0), seconds(10));
  tracker.evaluate();
  EXPECT_FALSE(tracker.state(seconds(10)).idle) << "one quiet evaluation is not enough";
  tracker.observe(device(), use_of(0), seconds(15));
  tracker.evaluate();
  EXPECT_TRUE(tracker.state(seconds(15)).idle);
  EXPECT_EQ(tracker.state(seconds(15)).idle_for, seconds(12));
}

TEST(IdleTracker, WorkEndsIdlenessAtOnce) {
  IdleTracker tracker(seconds(0));
  tracker.evaluate();
  tracker.evaluate();
  ASSERT_TRUE(tracker.state(seconds(10)).idle);
  tracker.observe(device(), use_of(0.01), seconds(11));
  EXPECT_FALSE(tracker.state(seconds(11)).idle);
  EXPECT_DOUBLE_EQ(tracker.state(seconds(11)).highest_sm.value, 0.01);
}

TEST(IdleTracker, TheEncoderIsWorkToo) {
  IdleTracker tracker(seconds(0));
  for (int i = 1; i <= 4; ++i) {
    tracker.observe(device(), use_of(0, 0.2), seconds(5 * i));
    tracker.evaluate();
  }
  EXPECT_FALSE(tracker.state(seconds(20)).idle);
}

TEST(IdleTracker, AGpuThatCannotSayMakesNobodyIdle) {
  for (const auto utilization : {UtilizationState::kUnsupported, UtilizationState::kFailed}) {
    IdleTracker tracker(seconds(0));
    for (int i = 1; i <= 4; ++i) {
      tracker.observe(device(utilization), use_of(0), seconds(5 * i));
      tracker.evaluate();
    }
    EXPECT_FALSE(tracker.state(seconds(20)).idle);
    EXPECT_FALSE(tracker.state(seconds(20)).evaluated);
  }
}

TEST(IdleTracker, OneQuietLookSaysNothingOfSomebodyNeverSeenToWork) {
  IdleTracker tracker(seconds(0));
  tracker.observe(device(), use_of(0), seconds(5));
  tracker.evaluate();
  EXPECT_FALSE(tracker.state(seconds(5)).evaluated);
  tracker.evaluate();
  EXPECT_TRUE(tracker.state(seconds(10)).evaluated);
  IdleTracker worker(seconds(0));
  worker.observe(device(), use_of(0.5), seconds(5));
  worker.evaluate();
  worker.evaluate();
  EXPECT_TRUE(worker.state(seconds(10)).evaluated) << "it worked, and one quiet evaluation does not make it idle";
  EXPECT_FALSE(worker.state(seconds(10)).idle);
}

TEST(IdleTracker, GoesOnFromWhatItRemembers) {
  IdleTracker before(seconds(0));
  before.observe(device(), use_of(0.5), seconds(2));
  before.evaluate();
  before.evaluate();
  const IdleTracker::Memory memory = before.memory(seconds(10));
  EXPECT_EQ(memory.quiet_for, seconds(8));
  IdleTracker after(memory, seconds(10));
  EXPECT_FALSE(after.state(seconds(70)).evaluated) << "nobody has looked yet";
  after.observe(device(), use_of(0), seconds(75));
  after.evaluate();
  EXPECT_TRUE(after.state(seconds(75)).idle);
  EXPECT_EQ(after.state(seconds(75)).idle_for, seconds(73));
  after.observe(device(), use_of(0.1), seconds(80));
  EXPECT_FALSE(after.state(seconds(80)).idle);
  after.observe_nothing();
  EXPECT_EQ(after.memory(seconds(81)).quiet_evaluations, 0u) << "a GPU that cannot say makes nobody idle";
}

TEST(IdleTracker, OneFailureStartsTheCountAnew) {
  IdleTracker tracker(seconds(0));
  tracker.evaluate();
  tracker.evaluate();
  ASSERT_TRUE(tracker.state(seconds(10)).idle);
  tracker.observe(device(UtilizationState::kFailed), use_of(0), seconds(12));
  tracker.evaluate();
  tracker.evaluate();
  EXPECT_FALSE(tracker.state(seconds(20)).idle);
  tracker.evaluate();
  EXPECT_TRUE(tracker.state(seconds(25)).idle);
}

}  // namespace
}  // namespace gpuledger::attribute
