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
