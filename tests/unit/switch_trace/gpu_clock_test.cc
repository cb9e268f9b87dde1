// SPDX-License-Identifier: Apache-2.0
#include "sample/switch_trace/gpu_clock.h"

#include <gtest/gtest.h>

namespace gpuledger::switch_trace {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Nanoseconds kGpuStart = seconds(1'800'000'000);

// 5 millionths too fast, and 3 ms behind the wall clock.
Nanoseconds gpu_at(Nanoseconds steady) {
  return kGpuStart - milliseconds(3) + steady + steady / 200'000;
}

TEST(GpuClock, FollowsAClockThatDrifts) {
  GpuClock clock;
  for (Nanoseconds t = seconds(100); t <= seconds(400); t += seconds(20)) {
    EXPECT_TRUE(clock.compare({gpu_at(t), t, microseconds(10)}));
  }
  for (const Nanoseconds t : {seconds(399), seconds(410), seconds(420)}) {
    EXPECT_NEAR(static_cast<double>(clock.to_steady(gpu_at(t)).count()), static_cast<double>(t.count()), 1000.0);
  }
}

TEST(GpuClock, NoticesThatItWasSet) {
  GpuClock clock;
  ASSERT_TRUE(clock.compare({gpu_at(seconds(1)), seconds(1), microseconds(10)}));
  ASSERT_TRUE(clock.compare({gpu_at(seconds(21)), seconds(21), microseconds(10)}));
  EXPECT_FALSE(clock.compare({gpu_at(seconds(41)) + seconds(30), seconds(41), microseconds(10)}));
  EXPECT_TRUE(clock.compare({gpu_at(seconds(61)) + seconds(30), seconds(61), microseconds(10)}));
  EXPECT_FALSE(clock.compare({gpu_at(seconds(81)) - seconds(5), seconds(81), microseconds(10)}));
  EXPECT_EQ(clock.to_steady(gpu_at(seconds(81)) - seconds(5)), seconds(81));
}

}  // namespace
}  // namespace gpuledger::switch_trace
