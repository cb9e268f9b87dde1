// SPDX-License-Identifier: Apache-2.0
#include "sample/switch_trace/self_test.h"

#include <gmock/gmock.h>

namespace gpuledger::switch_trace {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class Comparison : public ::testing::Test {
 protected:
  void list(Pid pid) {
    ProcessSample process;
    process.pid = pid;
    process.listed = true;
    device_.processes.push_back(process);
  }
  // One batch a second; everybody named has the same share of the time, less what goes into switching.
  std::string batch(const std::vector<Pid>& residents, bool scanned = true) {
    now_ += seconds(1);
    std::vector<ResidencyBin> bins;
    for (int i = 1; i <= 50; ++i) {
      ResidencyBin bin{now_ - seconds(1) + i * milliseconds(20), milliseconds(20), {}};
      for (const Pid pid : residents) {
        bin.residents.push_back(
            {pid, (milliseconds(20) - switching_) / static_cast<int>(residents.size()), milliseconds(0)});
      }
      bins.push_back(bin);
    }
    return test_.compare(device_, bins, scanned, now_);
  }
  std::string batches(int count, const std::vector<Pid>& residents, bool scanned = true) {
    std::string said;
    for (int i = 0; i < count && said.empty(); ++i) said = batch(residents, scanned);
    return said;
  }

  DeviceSample device_;
  SelfTest test_;
  milliseconds switching_{0};  // of 20
  Nanoseconds now_ = seconds(1000);
};

TEST_F(Comparison, IsPassedAfterAWhileWithoutADifference) {
  list(7);
  list(8);
  EXPECT_EQ(batch({7, 8}), "");
  EXPECT_FALSE(test_.passed(now_));
  EXPECT_EQ(batches(100, {7, 8}), "");
  EXPECT_TRUE(test_.passed(now_));
}

TEST_F(Comparison, AProcessThatNoListHasIsADifference) {
  list(7);
  EXPECT_THAT(batches(10, {7, 99}), HasSubstr("names the process 99"));
}

TEST_F(Comparison, AProcessThatComesOrLeavesIsNone) {
  list(7);
  EXPECT_EQ(batches(9, {7, 99}, false), "");  // nobody has read the lists
  list(99);
  EXPECT_EQ(batches(5, {7, 99}), "");
  EXPECT_EQ(batch({7, 55}), "");  // was there between two readings
  EXPECT_EQ(batches(30, {7}), "");
}

TEST_F(Comparison, WorkWithoutAnybodyIsADifference) {
  device_.activity = Activity{};
  device_.activity->graphics = Ratio{0.9};
  EXPECT_THAT(batches(10, {}), HasSubstr("no process on it"));
}

TEST_F(Comparison, TimeBetweenTwoContextsIsNone) {
  list(7);
  list(8);
  device_.activity = Activity{};
  device_.activity->graphics = Ratio{1.0};
  switching_ = milliseconds(5);  // a quarter: 2,500 switches a second and more
  EXPECT_EQ(batches(20, {7, 8}), "");
}

TEST_F(Comparison, RestingOnTheEngineIsNone) {
  list(7);
  device_.activity = Activity{};
  device_.activity->graphics = Ratio{0.1};
  EXPECT_EQ(batches(30, {7}), "");
}

TEST_F(Comparison, AWorkerThatTheTraceNeverNamesIsADifference) {
  list(7);
  list(8);
  device_.utilization = UtilizationState::kKnown;
  device_.processes[1].use.sm = Ratio{0.5};
  EXPECT_EQ(batches(4, {7}), "");
  EXPECT_FALSE(test_.suspicious());
  EXPECT_EQ(batches(2, {7}), "");
  EXPECT_TRUE(test_.suspicious());
  EXPECT_THAT(batches(20, {7}), HasSubstr("catch the process 8 working"));
}

TEST_F(Comparison, AWorkerThatItNamesNowAndThenIsNone) {
  list(7);
  list(8);
  device_.utilization = UtilizationState::kKnown;
  device_.processes[1].use.sm = Ratio{0.5};
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(batches(3, {7}), "");
    EXPECT_EQ(batch({7, 8}), "");
  }
}

TEST_F(Comparison, MoreTimeThanThereIsIsADifference) {
  const ResidencyBin bin{now_, milliseconds(20), {{7, milliseconds(15), {}}, {8, milliseconds(6), {}}}};
  list(7);
  list(8);
  EXPECT_THAT(test_.compare(device_, {bin}, false, now_), HasSubstr("add up"));
}

}  // namespace
}  // namespace gpuledger::switch_trace
