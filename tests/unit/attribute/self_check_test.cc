// SPDX-License-Identifier: Apache-2.0
#include "attribute/books/self_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "attribute/books/engine.h"
#include "support/batch_builder.h"

namespace gpuledger::attribute {
namespace {

// A GPU with steps of one second. Charges and GPU times are as the test says; the energy is that of all charges.
class CheckedGpu {
 public:
  struct Work {
    uint64_t account;
    double joules;         // charged in every step
    double seconds = 0.5;  // of GPU time
  };

  CheckedGpu& run(int steps, const std::vector<Work>& work) {
    for (int i = 0; i < steps; ++i) {
      double joules = 0;
      std::vector<SelfCheck::Process> processes;
      for (const Work& each : work) {
        SelfCheck::Process& total = totals_[each.account];
        total.account = each.account;
        total.joules += each.joules;
        total.seconds += each.seconds;
        joules += each.joules;
        processes.push_back(total);
      }
      check.observe(now_, now_ + 1, joules, processes);
      now_ += 1;
    }
    return *this;
  }
  void correct(uint64_t account, double joules) { totals_[account].joules += joules; }
  void pause() { now_ += 1; }

  SelfCheck check;

 private:
  double now_ = 1000;
  std::map<uint64_t, SelfCheck::Process> totals_;
};

// 200 W while it works, measured.
const std::vector<CheckedGpu::Work> kAlone = {{1, 200, 1}};
const std::vector<CheckedGpu::Work> kFair = {{1, 100}, {2, 60}};
// 30 of 160 J too much.
const std::vector<CheckedGpu::Work> kUnfair = {{1, 130}, {2, 30}};
constexpr double kUnfairRatio = 30.0 / 160;

TEST(SelfCheck, AbsentBeforeTheFirstComparison) {
  CheckedGpu gpu;
  gpu.run(60, kAlone);
  EXPECT_EQ(gpu.check.error_ratio(), std::nullopt);
  EXPECT_EQ(gpu.check.comparisons(), 0u);
}

TEST(SelfCheck, AbsentIfNobodyIsEverAlone) {
  CheckedGpu gpu;
  gpu.run(60, kUnfair).run(20, {{1, 100}, {2, 30}, {3, 30}}).run(20, {{2, 100}, {3, 30}});
  EXPECT_EQ(gpu.check.error_ratio(), std::nullopt);
}

TEST(SelfCheck, BecomesAlone) {
  CheckedGpu gpu;
  gpu.run(10, kUnfair).run(2, kAlone);
  EXPECT_EQ(gpu.check.comparisons(), 0u) << "it is not known yet";
  gpu.run(1, kAlone);
  EXPECT_EQ(gpu.check.comparisons(), 1u);
  EXPECT_NEAR(gpu.check.error_ratio().value(), kUnfairRatio, 1e-9);
  gpu.run(20, kAlone);
  EXPECT_EQ(gpu.check.comparisons(), 1u) << "one for each change";
}

TEST(SelfCheck, StopsBeingAlone) {
  CheckedGpu gpu;
  gpu.run(5, kAlone).run(5, kUnfair);
  EXPECT_EQ(gpu.check.comparisons(), 0u);
  gpu.run(1, kUnfair);
  EXPECT_EQ(gpu.check.comparisons(), 1u);
  EXPECT_NEAR(gpu.check.error_ratio().value(), kUnfairRatio, 1e-9);
  gpu.run(100, kFair);
  EXPECT_EQ(gpu.check.comparisons(), 1u);
}

TEST(SelfCheck, LeavesAShortSharedTime) {
  CheckedGpu gpu;
  gpu.run(5, kAlone).run(4, kUnfair).run(5, {{2, 100, 1}});
  EXPECT_EQ(gpu.check.comparisons(), 2u) << "the one that left, and the one that stayed";
  EXPECT_GT(gpu.check.error_ratio().value(), 0);
}

TEST(SelfCheck, ChargesThatAreRightHaveNoError) {
  CheckedGpu gpu;
  gpu.run(5, kAlone).run(20, kFair).run(5, kAlone);
  EXPECT_EQ(gpu.check.comparisons(), 2u);
  EXPECT_NEAR(gpu.check.error_ratio().value(), 0, 1e-9);
}

TEST(SelfCheck, MeanByJoules) {
  CheckedGpu gpu;
  gpu.run(4, kUnfair).run(4, kAlone);  // 2 s are compared
  const double first = gpu.check.error_ratio().value();
  gpu.run(60, kFair).run(4, kAlone);  // 5 s and more than 30 s, with no error
  EXPECT_EQ(gpu.check.comparisons(), 3u);
  EXPECT_NEAR(first, kUnfairRatio, 1e-9);
  EXPECT_LT(gpu.check.error_ratio().value(), kUnfairRatio * 2 / 30);
}

TEST(SelfCheck, OldComparisonsFade) {
  CheckedGpu gpu;
  gpu.run(30, kUnfair).run(5, kAlone);
  for (int i = 0; i < 300; ++i) gpu.run(5, kFair).run(5, kAlone);
  EXPECT_EQ(gpu.check.comparisons(), 601u);
  EXPECT_LT(gpu.check.error_ratio().value(), 0.001);
}

TEST(SelfCheck, OnlyTheLastMinuteOfALongSharedTime) {
  CheckedGpu gpu;
  gpu.run(600, kUnfair).run(70, kFair).run(5, kAlone);
  EXPECT_EQ(gpu.check.comparisons(), 1u);
  EXPECT_NEAR(gpu.check.error_ratio().value(), 0, 1e-9);
}

TEST(SelfCheck, CorrectionsAfterTheChangeDoNotCount) {
  CheckedGpu gpu;
  gpu.run(10, kUnfair);
  gpu.correct(1, -300);  // in the step in which the other left
  gpu.run(1, kUnfair).run(5, kAlone);
  EXPECT_NEAR(gpu.check.error_ratio().value(), kUnfairRatio, 1e-9);
}

TEST(SelfCheck, TooShortTimesSayNothing) {
  CheckedGpu gpu;
  gpu.run(3, kUnfair).run(10, kAlone);
  EXPECT_EQ(gpu.check.comparisons(), 0u) << "shared: one whole second";
  CheckedGpu other;
  other.run(10, kUnfair).run(2, kAlone).run(10, kUnfair);
  EXPECT_EQ(other.check.comparisons(), 0u) << "alone: one settled second";
}

TEST(SelfCheck, AnIdleProcessHasNoWattsOfWork) {
  CheckedGpu gpu;
  gpu.run(10, kUnfair).run(10, {{1, 2, 0.01}}).run(10, kUnfair);
  EXPECT_EQ(gpu.check.comparisons(), 0u);
}

TEST(SelfCheck, AGapEndsWhatIsUnderWay) {
  CheckedGpu gpu;
  gpu.run(10, kUnfair);
  gpu.pause();
  gpu.run(10, kAlone);
  EXPECT_EQ(gpu.check.comparisons(), 0u);
  gpu.check.interrupt();
  gpu.run(10, kUnfair);
  EXPECT_EQ(gpu.check.comparisons(), 0u);
}

TEST(SelfCheck, BadInputIsNotCompared) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const SelfCheck::Process sound{1, 100, 1}, joules{1, kNan, 1}, seconds{1, 1, HUGE_VAL};
  const auto after = [&](double begin, double end, double energy, const SelfCheck::Process& process) {
    CheckedGpu gpu;
    gpu.run(10, kUnfair);
    gpu.check.observe(begin, end, energy, {&process, 1});
    gpu.run(10, kAlone);
    EXPECT_EQ(gpu.check.error_ratio(), std::nullopt);
    gpu.run(10, kUnfair);
    EXPECT_NEAR(gpu.check.error_ratio().value(), kUnfairRatio, 1e-9) << "and goes on";
  };
  after(1010, 1011, kNan, sound);
  after(1010, 1011, -1, sound);
  after(1010, 1010, 1, sound);
  after(kNan, 1011, 1, sound);
  after(1010, 1011, 1, joules);
  after(1010, 1011, 1, seconds);
}

// A claim may fall, and a claim may be more than the GPU used: corrections of other times.
TEST(SelfCheck, NeverMoreThanAll) {
  CheckedGpu gpu;
  gpu.run(5, kAlone).run(1, {{1, 0}, {2, 160}});
  gpu.correct(1, 1e6);
  gpu.run(5, {{1, 0}, {2, 160}});
  EXPECT_LE(gpu.check.error_ratio().value(), 1);
}

TEST(SelfCheck, RemembersOverARestart) {
  CheckedGpu gpu;
  gpu.run(5, kAlone).run(10, kUnfair);
  const SelfCheck again(gpu.check.memory());
  EXPECT_EQ(again.comparisons(), 1u);
  EXPECT_EQ(again.error_ratio(), gpu.check.error_ratio());
  for (const SelfCheck::Memory& unsound :
       {SelfCheck::Memory{3, -1, 5}, SelfCheck::Memory{3, 1, 0}, SelfCheck::Memory{0, 1, 5}}) {
    EXPECT_EQ(SelfCheck(unsound).error_ratio(), std::nullopt);
    EXPECT_EQ(SelfCheck(unsound).comparisons(), 0u);
  }
}

// Charged by utilization: half each. Measured: 300 W alone, and the same beside an idle loop.
TEST(SelfCheck, IsInTheBooksOfTheGpu) {
  BookingRules rules;
  rules.attribution = Attribution::kUtilization;
  rules.idle_power = Power();
  Engine engine(rules);
  int64_t millijoules = 0;
  Ledger ledger;
  const auto run = [&](int from, int to, bool both) {
    for (int i = from; i < to; ++i) {
      testing::BatchBuilder batch(i);
      batch.gpu(0, millijoules += both ? 150'000 : 300'000).process(1, both ? 0.5 : 1);
      if (both) batch.process(2, 0.5);
      ledger = engine.advance(batch.batch(), batch.identities());
    }
  };
  run(0, 10, true);
  EXPECT_EQ(ledger.devices.at(0).attribution_error, std::nullopt);
  run(10, 20, false);
  EXPECT_EQ(ledger.devices.at(0).attribution_comparisons, 1u);
  EXPECT_NEAR(ledger.devices.at(0).attribution_error.value(), 0.5, 0.01);

  Engine next(rules);
  next.restore(engine.state(), "");
  testing::BatchBuilder batch(30);
  batch.gpu(0, millijoules);
  ledger = next.advance(batch.batch(), batch.identities());
  EXPECT_EQ(ledger.devices.at(0).attribution_comparisons, 1u);
  EXPECT_NEAR(ledger.devices.at(0).attribution_error.value(), 0.5, 0.01);
}

}  // namespace
}  // namespace gpuledger::attribute
