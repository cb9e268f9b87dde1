// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/mps_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attribute/estimate/signatures.h"

namespace gpuledger::attribute {
namespace {

constexpr double kFullWatts = 700;

Features features(double power, double sm, double occupancy, double tensor, double dram, double fp32) {
  Features features;
  features << power, sm, occupancy, tensor, dram, fp32, 0;
  return features;
}
const Features kMultiplies = features(0.8, 0.85, 0.12, 0.74, 0, 0);
const Features kCopies = features(0.45, 0.92, 0.87, 0, 0.8, 0);
const Features kSmall = features(0.1, 0.23, 0.03, 0, 0, 0.17);

struct Runner {
  uint64_t account;
  Features signature;
  double time;
};

// A GPU whose readings are exact.
class Mps {
 public:
  void run(int seconds, const std::vector<Runner>& runners, bool blind = false) {
    for (int i = 0; i < seconds; ++i) {
      history.push_back(window(runners, blind));
      fit.fit(history);
      check();
    }
  }
  double joules(uint64_t account) const {
    double sum = 0;
    for (const Window& window : history) {
      for (const Window::Part& part : window.parts) sum += part.account == account ? part.joules : 0;
    }
    return sum;
  }

  MpsFit fit{Constants(), signature_prior(Constants(), "NVIDIA H200")};
  std::deque<Window> history;

 private:
  Window window(const std::vector<Runner>& runners, bool blind) {
    Window window;
    window.company = std::make_shared<Company>();
    window.company->mps = true;
    window.begin = now_;
    window.end = now_ += 1;
    window.blind = blind;
    window.busy = 0;
    for (const Runner& runner : runners) {
      window.parts.emplace_back().account = runner.account;
      window.shown += runner.time * runner.signature;
      window.busy += runner.time;
    }
    window.busy = std::min(1.0, window.busy);
    window.joules = window.shown[kPower] * kFullWatts;
    window.variance.setConstant(1e-4);
    if (blind) window.shown.setConstant(0.9);
    return window;
  }
  // What always holds.
  void check() const {
    for (const Window& window : history) {
      double sum = 0;
      for (const Window::Part& part : window.parts) {
        ASSERT_TRUE(std::isfinite(part.joules));
        ASSERT_GE(part.joules, 0) << "no signature is below 0";
        ASSERT_GT(part.time, 0);
        ASSERT_LE(part.time, Constants().mps_most * window.busy + 1e-9);
        sum += part.joules;
      }
      ASSERT_NEAR(sum, window.joules, 1e-9 * kFullWatts);
    }
  }

  double now_ = 100;
};

TEST(MpsFit, OneThatIsAloneHasItAll) {
  Mps mps;
  mps.run(5, {{1, kCopies, 0.7}});
  EXPECT_DOUBLE_EQ(mps.joules(1), 5 * 0.7 * 0.45 * kFullWatts);
  EXPECT_DOUBLE_EQ(mps.history.back().parts[0].time, 0.7);
}

TEST(MpsFit, ClientsAreToldApartByWhenTheyCome) {
  Mps mps;
  mps.run(10, {{1, kSmall, 1}});
  mps.run(10, {{1, kSmall, 1}, {2, kCopies, 0.5}});
  mps.run(10, {{1, kSmall, 1}, {2, kCopies, 0.5}, {3, kMultiplies, 0.4}});
  EXPECT_NEAR(mps.joules(1), 30 * 0.1 * kFullWatts, 0.25 * 30 * 0.1 * kFullWatts);
  EXPECT_NEAR(mps.joules(2), 20 * 0.5 * 0.45 * kFullWatts, 0.25 * 20 * 0.5 * 0.45 * kFullWatts);
  EXPECT_NEAR(mps.joules(3), 10 * 0.4 * 0.8 * kFullWatts, 0.25 * 10 * 0.4 * 0.8 * kFullWatts);
}

TEST(MpsFit, AClientHasLessWhenAnotherComes) {
  Mps mps;
  mps.run(10, {{1, kCopies, 1}});
  const double before = mps.joules(1);
  mps.run(15, {{1, kCopies, 0.4}, {2, kMultiplies, 0.6}});
  EXPECT_NEAR(mps.joules(1) - before, 15 * 0.4 * 0.45 * kFullWatts, 0.25 * 15 * 0.4 * 0.45 * kFullWatts);
  EXPECT_NEAR(mps.joules(2), 15 * 0.6 * 0.8 * kFullWatts, 0.25 * 15 * 0.6 * 0.8 * kFullWatts);
}

// Two that were never alone; then one goes.
TEST(MpsFit, LaterWindowsCorrectEarlierOnes) {
  Mps mps;
  mps.run(20, {{1, kCopies, 0.5}, {2, kMultiplies, 0.5}});
  const double truth = 20 * 0.5 * 0.45 * kFullWatts;
  mps.run(10, {{2, kMultiplies, 1}});
  EXPECT_NEAR(mps.joules(1), truth, 0.2 * truth);
}

TEST(MpsFit, ABlindWindowTeachesNothing) {
  const auto joules_with = [](bool blind) {
    Mps mps;
    mps.run(10, {{1, kCopies, 1}});
    mps.run(10, {{1, kCopies, 0.5}, {2, kMultiplies, 0.4}});
    if (blind) mps.run(1, {{1, kCopies, 0.5}, {2, kMultiplies, 0.4}}, true);
    mps.run(10, {{1, kCopies, 0.5}, {2, kMultiplies, 0.4}});
    return mps.joules(1) - (blind ? mps.history[20].parts[0].joules : 0);
  };
  EXPECT_NEAR(joules_with(true), joules_with(false), 0.01 * joules_with(false));
}

TEST(MpsFit, WhatNobodySpentIsDividedEqually) {
  Mps mps;
  mps.run(10, {{1, Features::Zero(), 0.5}, {2, Features::Zero(), 0.5}});
  mps.history.back().joules = 0;
  EXPECT_NEAR(mps.joules(1) + mps.joules(2), 0, 1e-9);
}

TEST(MpsFit, ACrowdStaysWithinItsBudget) {
  Mps mps;
  std::vector<Runner> crowd;
  for (uint64_t account = 1; account <= 40; ++account)
    crowd.push_back({account, account % 2 ? kSmall : kCopies, 0.025});
  mps.run(200, crowd);
  const size_t reach = MpsFit::reach(mps.history);
  EXPECT_LT(reach, 200u) << "of so many the oldest are not fitted again";
  EXPECT_GT(reach, 60u);
  EXPECT_EQ(mps.fit.fit(mps.history), reach);
  mps.run(10, {{1, kSmall, 0.5}, {2, kCopies, 0.5}});
  EXPECT_GT(MpsFit::reach(mps.history), reach);
}

TEST(MpsFit, LooksBackForSomeMinutesAndPastWhatIsNotMps) {
  Mps mps;
  mps.run(245, {{1, kSmall, 0.5}, {2, kCopies, 0.5}});
  EXPECT_EQ(MpsFit::reach(mps.history), 240u);
  Window other = mps.history.back();
  other.company = std::make_shared<Company>();
  mps.history.insert(mps.history.end() - 1, other);
  EXPECT_EQ(mps.fit.fit(mps.history), 241u);
  EXPECT_EQ((mps.history.end() - 2)->parts[0].joules, other.parts[0].joules);
}

}  // namespace
}  // namespace gpuledger::attribute
