// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "attribute/estimate/estimator.h"

// Whatever a step says, it unbalances nothing, and a step that says nothing teaches nothing.
namespace gpuledger::attribute {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kEndless = std::numeric_limits<double>::infinity();
constexpr double kFull = 700;
constexpr double kWatts = 420;

Member member_of(uint64_t account, double begin, double end) {
  Member member;
  member.account = member.owner = account;
  member.process = {static_cast<Pid>(account), account};
  member.busy = 0.5;
  member.from = begin;
  member.to = end;
  return member;
}

// Time on a GPU on which nothing is certain.
class BadDay : public ::testing::Test {
 protected:
  Step step(double seconds, size_t processes) {
    Step result;
    result.begin = now_;
    result.end = now_ += seconds;
    result.full_watts = kFull;
    result.dynamic_joules = kWatts * seconds;
    Reading reading;
    reading.from = result.begin;
    reading.to = result.end;
    reading.busy = 1;
    for (auto& part : reading.parts) part = 0.4;
    result.readings.push_back(reading);
    for (uint64_t account = 1; account <= processes; ++account) {
      result.members.push_back(member_of(account, result.begin, result.end));
      result.shares.push_back(1.0 / static_cast<double>(processes));
      most_ = std::max(most_, account);
    }
    return result;
  }

  void observe(const Step& step) {
    if (estimator_->observe(step)) spent_ += step.dynamic_joules;
  }

  void expect_balance(const std::string& what) const {
    double claimed = 0;
    for (uint64_t account = 1; account <= most_; ++account) {
      const Claim claim = estimator_->claim(account);
      EXPECT_TRUE(std::isfinite(claim.joules)) << what << ": process " << account;
      EXPECT_TRUE(std::isfinite(claim.error)) << what << ": process " << account;
      EXPECT_GE(claim.error, -1e-6) << what << ": process " << account;
      EXPECT_TRUE(std::isfinite(estimator_->owner_error(account))) << what << ": owner " << account;
      claimed += claim.joules;
    }
    EXPECT_NEAR(claimed, spent_, 1e-6 * std::max(1.0, spent_)) << what;
  }

  std::unique_ptr<Estimator> estimator_ = make_estimator(Attribution::kAdaptive, Constants(), "NVIDIA H200");
  double now_ = 1000;
  double spent_ = 0;
  uint64_t most_ = 0;
};

TEST_F(BadDay, ActivityThatIsNoNumberOrOverFullScale) {
  for (double bad : {kNaN, kEndless, -kEndless, -0.5, 1.7, 1e30}) {
    for (int i = 0; i < 5; ++i) observe(step(1, 2));
    Step odd = step(1, 2);
    odd.readings.front().parts[0] = bad;
    odd.readings.front().parts[2] = bad;
    observe(odd);
    odd = step(1, 2);
    odd.readings.front().busy = bad;
    observe(odd);
    odd = step(1, 2);
    odd.readings.front().clock = bad;
    observe(odd);
    for (int i = 0; i < 5; ++i) observe(step(1, 2));
    expect_balance("a reading of " + std::to_string(bad));
  }
  const double before = estimator_->claim(1).joules;
  for (int i = 0; i < 10; ++i) observe(step(1, 2));
  EXPECT_NEAR(estimator_->claim(1).joules - before, 10 * kWatts / 2, 10 * kWatts * 0.1) << "afterwards it is as before";
}

TEST_F(BadDay, PowerSamplesThatAreNoNumbers) {
  for (double bad : {kNaN, kEndless, -900.0}) {
    Step odd = step(1, 2);
    odd.power = {{odd.begin + 0.1, 400}, {odd.begin + 0.5, bad}, {odd.begin + 0.9, 430}};
    observe(odd);
  }
  observe(step(1, 2));
  expect_balance("power samples");
}

TEST_F(BadDay, StepsWithoutAnyReading) {
  for (int i = 0; i < 20; ++i) {
    Step blind = step(1, 3);
    blind.readings.clear();
    observe(blind);
  }
  expect_balance("no readings");
  EXPECT_NEAR(estimator_->claim(1).joules, estimator_->claim(3).joules, 1e-6 * spent_) << "nothing tells them apart";
}

TEST_F(BadDay, ACounterThatStandsStillAndThenJumps) {
  for (int i = 0; i < 10; ++i) observe(step(1, 2));
  for (int i = 0; i < 4; ++i) {
    Step still = step(1, 2);
    still.dynamic_joules = 0;
    observe(still);
  }
  Step jump = step(1, 2);
  jump.dynamic_joules = 5 * kWatts;
  observe(jump);
  for (int i = 0; i < 10; ++i) observe(step(1, 2));
  expect_balance("a counter that stood still");
  EXPECT_NEAR(estimator_->claim(1).joules, spent_ / 2, 0.05 * spent_);
}

TEST_F(BadDay, AProcessThatIsThereForOneStep) {
  for (int i = 0; i < 10; ++i) observe(step(1, 1));
  observe(step(1, 2));
  for (int i = 0; i < 10; ++i) observe(step(1, 1));
  expect_balance("one step");
  EXPECT_LT(estimator_->claim(2).joules, kWatts + 1);
  EXPECT_GT(estimator_->claim(2).joules, 0);
}

TEST_F(BadDay, FiveHundredProcesses) {
  for (int i = 0; i < 30; ++i) observe(step(1, 500));
  expect_balance("a crowd");
}

TEST_F(BadDay, ASamplerThatWasLate) {
  for (double seconds : {1.0, 0.0005, 9.5, 1.0, 0.02, 30.0, 1.0}) {
    Step late = step(seconds, 2);
    late.readings.front().from = late.end - std::min(seconds, 0.1);  // only the end was seen
    observe(late);
  }
  expect_balance("late steps");
}

TEST_F(BadDay, ReadingsAndResidencyOutsideTheStep) {
  observe(step(1, 2));
  Step odd = step(1, 2);
  odd.readings.front().from = odd.end + 5;
  odd.readings.front().to = odd.begin - 5;
  odd.power = {{odd.begin - 3, 100}, {odd.end + 3, 900}};
  odd.residency.push_back({odd.end + 1, odd.end + 1.02, {{1, 0.02, 0.02}}});
  odd.residency.push_back({odd.begin, odd.begin, {{2, 1, 1}}});
  odd.residency.push_back({odd.begin, odd.end, {{1, kNaN, 0}, {2, -4, 9}, {77, 0.5, 0.5}}});
  observe(odd);
  observe(step(1, 2));
  expect_balance("evidence from elsewhere");
}

TEST_F(BadDay, MembersWithStrangeTimesAndShares) {
  observe(step(1, 3));
  Step odd = step(1, 3);
  odd.members[0].from = odd.end;  // there for no time at all
  odd.members[1].from = odd.end + 2;
  odd.members[2].busy = odd.shares[2] = kNaN;
  odd.shares[0] = -1;
  observe(odd);
  observe(step(1, 3));
  expect_balance("members");
}

}  // namespace
}  // namespace gpuledger::attribute
