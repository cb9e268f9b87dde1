// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/joint_estimator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace gpuledger::attribute {
namespace {

constexpr double kFullPower = 700;

// A kind of work: watts above the static ones, and what it makes the GPU show when it has it to itself.
struct Work {
  double watts, sm, occupancy, tensor, dram, fp32;
};
constexpr Work kGemm{560, 0.85, 0.12, 0.74, 0.0, 0.0};
constexpr Work kCopy{320, 0.92, 0.87, 0.0, 0.80, 0.0};
constexpr Work kSpin{0, 0.007, 0.0, 0.0, 0.0, 0.0};
constexpr Work kNothing{0, 0, 0, 0, 0, 0};

struct Worker {
  uint64_t account;
  const Work* work;
  double share;   // of the GPU's time
  double caught;  // what the driver's samples say
  uint64_t owner = 0;
  uint64_t kin = 0;
};

// An estimator and the time that has passed on its GPU.
class Gpu {
 public:
  void run(int seconds, const std::vector<Worker>& workers) {
    for (int i = 0; i < seconds; ++i) (void)estimator.observe(next(workers));
  }
  Step next(const std::vector<Worker>& workers) {
    Step step;
    step.begin = now_;
    step.end = now_ += 1;
    step.full_watts = kFullPower;
    Reading reading;
    reading.from = step.begin;
    reading.to = step.end;
    double parts[Activity::kParts] = {};
    double busy = 0;
    for (const Worker& w : workers) {
      step.dynamic_joules += w.share * w.work->watts;
      const double shown[Activity::kParts] = {w.work->sm,   w.work->occupancy, w.work->tensor,
                                              w.work->dram, w.work->fp32,      0};
      for (size_t part = 0; part < Activity::kParts; ++part) parts[part] += w.share * shown[part];
      busy += w.share;
      Member member;
      member.account = w.account;
      member.owner = w.owner == 0 ? w.account : w.owner;
      member.kin = w.kin;
      member.process = {static_cast<Pid>(w.account), w.account};
      member.busy = w.caught;
      member.from = step.begin;
      member.to = step.end;
      step.members.push_back(member);
      step.shares.push_back(w.caught);
    }
    reading.busy = std::min(1.0, busy);
    for (size_t part = 0; monitors && part < Activity::kParts; ++part) reading.parts[part] = parts[part];
    step.readings.push_back(reading);
    if (mps) step.evidence = TimeEvidence::kMps;
    return step;
  }
  double joules(uint64_t account) const { return estimator.claim(account).joules; }
  double error(uint64_t account) const { return estimator.claim(account).error; }
  double last(uint64_t account) const { return estimator.claim(account).last_joules; }

  Constants constants;
  JointEstimator estimator{constants, "NVIDIA H200"};
  bool monitors = true;
  bool mps = false;

 private:
  double now_ = 100;
};

TEST(JointEstimator, AloneIsAllOfItAndWithoutDoubt) {
  Gpu gpu;
  gpu.run(10, {{1, &kGemm, 1, 1}});
  EXPECT_NEAR(gpu.joules(1), 5600, 1e-6);
  EXPECT_EQ(gpu.error(1), 0);
}

TEST(JointEstimator, NewcomerPaysForWhatTheKnownOneDoesNotExplain) {
  Gpu gpu;
  gpu.run(10, {{1, &kGemm, 1, 1}});
  const double before = gpu.joules(1);
  gpu.run(20, {{1, &kGemm, 0.3, 0.4}, {2, &kCopy, 0.6, 0.6}});  // samples off by a tenth
  EXPECT_NEAR(gpu.joules(1) - before, 20 * 0.3 * 560, 600);
  EXPECT_NEAR(gpu.joules(2), 20 * 0.6 * 320, 600);
  EXPECT_GT(gpu.error(2), 0);
}

TEST(JointEstimator, ASpinLoopIsBusyAndFree) {
  Gpu gpu;
  gpu.run(10, {{1, &kSpin, 1, 1}});
  gpu.run(20, {{1, &kSpin, 0.5, 0.5}, {2, &kGemm, 0.5, 0.5}});
  EXPECT_NEAR(gpu.joules(1), 0, 50);
  EXPECT_NEAR(gpu.joules(2), 20 * 280, 50);
}

TEST(JointEstimator, TwoOfAKindAreToldApartByTheSamples) {
  Gpu gpu;
  gpu.run(10, {{1, &kGemm, 1, 1}});
  const double before = gpu.joules(1);
  gpu.run(60, {{1, &kGemm, 0.5, 0.5}, {2, &kGemm, 0.5, 0.5}});
  EXPECT_NEAR(gpu.joules(1) - before, 60 * 280, 60 * 25);
  EXPECT_NEAR(gpu.joules(2), 60 * 280, 60 * 25);
}

TEST(JointEstimator, AFourthOfAKindPaysToo) {
  Gpu gpu;
  for (uint64_t account : {1, 2, 3}) gpu.run(6, {{account, &kGemm, 1, 1}});
  gpu.run(15, {{1, &kGemm, 0.33, 0.33}, {2, &kGemm, 0.33, 0.33}, {3, &kGemm, 0.33, 0.33}});
  gpu.run(20, {{1, &kGemm, 0.25, 0.25}, {2, &kGemm, 0.25, 0.25}, {3, &kGemm, 0.25, 0.25}, {4, &kGemm, 0.25, 0.25}});
  EXPECT_NEAR(gpu.joules(4), 20 * 140, 0.35 * 20 * 140) << "though the three could have used it all";
}

TEST(JointEstimator, LaterKnowledgeCorrectsThePast) {
  Gpu gpu;
  // Strangers that share from the start: only time tells them apart, and it says half and half.
  gpu.run(20, {{1, &kGemm, 0.5, 0.5}, {2, &kCopy, 0.5, 0.5}});
  EXPECT_NEAR(gpu.joules(1), 20 * (280 + 160) / 2, 1);
  const double doubt_of_strangers = gpu.error(1);
  gpu.run(10, {{2, &kCopy, 1, 1}});
  EXPECT_NEAR(gpu.joules(1), 20 * 280, 500);
  EXPECT_NEAR(gpu.joules(2), 20 * 160 + 10 * 320, 500);
  EXPECT_LT(gpu.error(1), doubt_of_strangers / 2);
}

TEST(JointEstimator, NothingIsLostInRevisions) {
  Gpu gpu;
  gpu.run(20, {{1, &kGemm, 0.5, 0.5}, {2, &kCopy, 0.5, 0.5}});
  gpu.run(10, {{2, &kCopy, 1, 1}});
  gpu.run(10, {{2, &kCopy, 0.6, 0.5}, {3, &kSpin, 0.4, 0.5}});
  EXPECT_NEAR(gpu.joules(1) + gpu.joules(2) + gpu.joules(3), 20 * 440 + 3200 + 10 * 0.6 * 320, 1e-6);
}

TEST(JointEstimator, AHolderThatIsNeverCaughtPaysNothing) {
  Gpu gpu;
  gpu.run(40, {{1, &kGemm, 1, 1}, {2, &kNothing, 0, 0}});
  EXPECT_LT(gpu.joules(2), 0.03 * gpu.joules(1));
}

TEST(JointEstimator, AHolderIsNotTakenForTheOneThatChanged) {
  Gpu gpu;
  gpu.run(20, {{1, &kGemm, 1, 1}, {2, &kNothing, 0, 0}});
  const double before = gpu.joules(2);
  gpu.run(10, {{1, &kCopy, 1, 1}, {2, &kNothing, 0, 0}});
  EXPECT_LT(gpu.joules(2) - before, 0.1 * 10 * 320) << "100 samples missed it";
}

TEST(JointEstimator, WhoStopsWorkingStopsPaying) {
  Gpu gpu;
  gpu.run(10, {{1, &kGemm, 0.5, 0.5}, {2, &kGemm, 0.5, 0.5}});
  gpu.run(6, {{1, &kGemm, 1, 1}, {2, &kNothing, 0, 0}});
  const double after_a_while = gpu.joules(2);
  gpu.run(30, {{1, &kGemm, 1, 1}, {2, &kNothing, 0, 0}});
  EXPECT_LE(gpu.joules(2), after_a_while + 1);
}

TEST(JointEstimator, MpsClientsAreToldApartByWhenTheyAreThere) {
  constexpr Work small{65, 0.23, 0.03, 0, 0, 0.17};
  Gpu gpu;
  gpu.mps = true;
  gpu.run(10, {{1, &small, 1, 0}});
  gpu.run(10, {{1, &small, 1, 0}, {2, &small, 1, 0}});
  gpu.run(10, {{1, &small, 1, 0}, {2, &small, 1, 0}, {3, &kSpin, 1, 0}});
  EXPECT_NEAR(gpu.joules(1), 30 * 65, 200);
  EXPECT_NEAR(gpu.joules(2), 20 * 65, 200);
  EXPECT_NEAR(gpu.joules(3), 0, 200);
}

TEST(JointEstimator, OneThatChangesItsWaysIsFoundOut) {
  Gpu gpu;
  gpu.run(10, {{1, &kSpin, 1, 1}});  // loads its data, polling
  gpu.run(10, {{2, &kCopy, 1, 1}});
  const double before = gpu.joules(2);
  gpu.run(20, {{1, &kGemm, 0.5, 0.5}, {2, &kCopy, 0.5, 0.5}});  // and then it multiplies
  EXPECT_NEAR(gpu.joules(1), 20 * 280, 800);
  EXPECT_NEAR(gpu.joules(2) - before, 20 * 160, 800);
}

TEST(JointEstimator, WarmingUpIsNotWhatItWillDo) {
  constexpr Work warming{40, 0.03, 0.01, 0.02, 0.01, 0.0};
  Gpu gpu;
  gpu.run(2, {{1, &warming, 1, 0}});
  gpu.run(20, {{1, &kGemm, 0.5, 0.5}, {2, &kGemm, 0.5, 0.5}});
  EXPECT_NEAR(gpu.joules(2), 20 * 280, 1300) << "not all of it, though the other was seen cheap";
}

TEST(JointEstimator, WhoWasThereWhileNothingWasSpentIsNoStranger) {
  // Two spin loops that were never alone, then somebody who multiplies: nobody's signature is known, but the
  // spinners were caught busy while the GPU drew next to nothing.
  Gpu gpu;
  gpu.run(8, {{1, &kSpin, 0.6, 0.6}, {2, &kSpin, 0.4, 0.4}});
  gpu.run(10, {{1, &kSpin, 0.4, 0.4}, {2, &kSpin, 0.3, 0.3}, {3, &kGemm, 0.3, 0.3}});
  EXPECT_GT(gpu.joules(3), 0.5 * 10 * 0.3 * 560);
  EXPECT_LT(gpu.joules(1), 0.1 * 10 * 0.3 * 560);
}

TEST(JointEstimator, SamplesOfOnePhaseSayNothingAboutAnother) {
  Gpu gpu;
  gpu.run(10, {{1, &kGemm, 1, 1}});
  gpu.run(30, {{1, &kGemm, 1, 1}, {2, &kNothing, 0, 0}});
  const double before = gpu.joules(2);
  gpu.run(5, {{1, &kGemm, 0.5, 0.5}, {2, &kCopy, 0.5, 0.5}});  // 150 samples said that it rests
  EXPECT_NEAR(gpu.joules(2) - before, 5 * 160, 5 * 120);
}

TEST(JointEstimator, ANewcomerIsNotKnownByItsRest) {
  Gpu gpu;
  gpu.run(10, {{1, &kGemm, 1, 1}});
  gpu.run(4, {{1, &kGemm, 1, 1}, {2, &kNothing, 0, 0}});  // loads its data
  gpu.run(3, {{1, &kGemm, 0.5, 0.5}, {2, &kCopy, 0.5, 0.5}});
  const double before = gpu.joules(2);
  gpu.run(10, {{2, &kCopy, 0.8, 0.8}, {3, &kSpin, 0.2, 0.2}});
  EXPECT_NEAR(gpu.joules(2) - before, 10 * 0.8 * 320, 800) << "its seconds of loading are not what it costs";
}

TEST(JointEstimator, WhoWasMissedWhileTheGpuLookedTheSameWasAtWork) {
  Gpu gpu;
  gpu.run(16, {{1, &kGemm, 0.5, 0}, {2, &kCopy, 0.5, 1}});  // samples in step with the other
  EXPECT_LT(gpu.error(1), 400) << "nothing speaks against it yet";
  gpu.run(10, {{1, &kGemm, 0.5, 0.8}, {2, &kCopy, 0.5, 0.2}});
  // Sixteen seconds in step are more than the error of samples allows for.
  EXPECT_LE(std::abs(gpu.joules(1) - 26 * 280), 2.5 * gpu.error(1)) << "never seen apart: a wide error";
  EXPECT_LE(std::abs(gpu.joules(2) - 26 * 160), 2.5 * gpu.error(2));
}

TEST(JointEstimator, TwoOfAKindThatTakeTurnsKeepWhatTheySpent) {
  Gpu gpu;
  gpu.run(60, {{1, &kGemm, 1, 1}, {2, &kNothing, 0, 0}});
  gpu.run(20, {{1, &kNothing, 0, 0}, {2, &kGemm, 1, 1}});  // the GPU looks the same all the time
  EXPECT_NEAR(gpu.joules(1), 60 * 560, 8 * 560);
  EXPECT_NEAR(gpu.joules(2), 20 * 560, 8 * 560);
  gpu.run(60, {{1, &kNothing, 0, 0}, {2, &kGemm, 1, 1}});
  EXPECT_NEAR(gpu.joules(1), 60 * 560, 8 * 560);
}

TEST(JointEstimator, WhoTakesOverDidNotWorkBefore) {
  Gpu gpu;
  gpu.run(12, {{1, &kGemm, 1, 1}, {2, &kNothing, 0, 0}});
  const double before = gpu.joules(1);
  gpu.run(4, {{1, &kNothing, 0, 0}, {2, &kGemm, 1, 1}});
  EXPECT_GT(gpu.joules(1), 0.9 * before);
  EXPECT_LT(gpu.error(1), 0.5 * before) << "20 samples that missed it are no proof, though they were never apart";
}

TEST(JointEstimator, APauseDoesNotMakeAWorkerRare) {
  Gpu gpu;
  gpu.run(8, {{1, &kGemm, 1, 1}});
  gpu.run(30, {{1, &kGemm, 0.5, 0.5}, {2, &kGemm, 0.5, 0.5}});
  const double before = gpu.last(2);
  for (int i = 0; i < 90; ++i) {
    Step pause = gpu.next({{1, &kNothing, 0, 0}, {2, &kNothing, 0, 0}});
    pause.quiet = true;
    (void)gpu.estimator.observe(pause);
  }
  gpu.run(1, {{1, &kGemm, 0.5, 0.5}, {2, &kGemm, 0.5, 0.5}});
  EXPECT_NEAR(gpu.last(2), before, 10);
}

TEST(JointEstimator, AHolderThatBeginsToWorkDoesNotUndoWhatWasLearnedBesideIt) {
  Gpu gpu;
  gpu.run(20, {{1, &kGemm, 1, 1}, {2, &kNothing, 0, 0}});
  gpu.run(20, {{1, &kGemm, 0.5, 0.5}, {2, &kSpin, 0.5, 0.5}});
  EXPECT_LT(gpu.joules(2), 0.06 * gpu.joules(1)) << "the look changed when it began: before, the other was alone";
}

TEST(JointEstimator, StrangersNeedAnSmForEveryWarp) {
  // Both are bound by memory, so dram and watts could all be the known one's. Warps could not.
  constexpr Work matvec{406, 0.81, 0.11, 0.03, 0.80, 0.0};
  constexpr Work gelu{430, 0.80, 0.66, 0.0, 0.54, 0.18};
  Gpu gpu;
  gpu.run(10, {{1, &matvec, 1, 1}});
  const double before = gpu.joules(1);
  gpu.run(3, {{1, &matvec, 0.45, 0.75}, {2, &gelu, 0.55, 0.25}});  // few samples, and unlucky ones
  EXPECT_LT(gpu.joules(1) - before, 1.5 * 3 * 0.45 * 406);
}

TEST(JointEstimator, AnMpsClientMayShowMoreWhenOthersGo) {
  constexpr Work gather{110, 0.98, 0.17, 0.0, 0.18, 0.0};
  Gpu gpu;
  gpu.mps = true;
  gpu.run(5, {{1, &kCopy, 1, 0}});
  gpu.run(8, {{1, &kCopy, 0.5, 0}, {2, &gather, 0.3, 0}});
  gpu.run(8, {{1, &kCopy, 0.3, 0}, {2, &gather, 0.3, 0}, {3, &kGemm, 0.4, 0}});
  const double before = gpu.joules(3);
  gpu.run(10, {{2, &gather, 0.3, 0}, {3, &kGemm, 0.7, 0}});
  EXPECT_GT(gpu.joules(3) - before, 0.75 * 10 * 0.7 * 560) << "not half of it, though neither was ever alone";
}

TEST(JointEstimator, WorksWithPowerAloneOnGpusWithoutActivity) {
  Gpu gpu;
  gpu.monitors = false;
  gpu.run(10, {{1, &kSpin, 1, 1}});
  gpu.run(20, {{1, &kSpin, 0.5, 0.5}, {2, &kGemm, 0.5, 0.5}});
  EXPECT_NEAR(gpu.joules(2), 20 * 280, 100);
}

// Hours change what a second costs (heat, clocks, longer prompts), too slowly for a new phase.
TEST(JointEstimator, ASignatureThatDriftsForHoursIsFollowed) {
  Gpu gpu;
  Work drifting = kCopy;
  gpu.run(10, {{2, &kSpin, 1, 1}});
  gpu.run(1800, {{1, &drifting, 1, 1}});
  for (int minute = 0; minute < 120; ++minute) {
    drifting.watts += 1;
    drifting.dram -= 0.002;
    gpu.run(60, {{1, &drifting, 1, 1}});
  }
  const double before = gpu.joules(1);
  gpu.run(20, {{1, &drifting, 0.5, 0.5}, {2, &kSpin, 0.5, 0.5}});
  EXPECT_NEAR(gpu.joules(1) - before, 20 * 220, 0.05 * 20 * 220);
}

// Three that share for two hours, never alone again. The driver's samples name one of them every 200 ms, at random.
TEST(JointEstimator, TheSplitOfASteadyNodeDoesNotDriftForHours) {
  Gpu gpu;
  gpu.run(10, {{1, &kSpin, 1, 1}});
  gpu.run(10, {{2, &kGemm, 1, 1}});
  std::mt19937 random(1);
  std::discrete_distribution<size_t> named({0.3, 0.5, 0.2});
  constexpr double kAll = 0.5 * 560 + 0.2 * 320;  // watts
  for (int half_hour = 0; half_hour < 4; ++half_hour) {
    const double spin = gpu.joules(1), gemm = gpu.joules(2);
    for (int second = 0; second < 1800; ++second) {
      double caught[3] = {};
      for (int sample = 0; sample < 5; ++sample) caught[named(random)] += 0.2;
      gpu.run(1, {{1, &kSpin, 0.3, caught[0]}, {2, &kGemm, 0.5, caught[1]}, {3, &kCopy, 0.2, caught[2]}});
    }
    EXPECT_LT(gpu.joules(1) - spin, 0.03 * 1800 * kAll) << "half hour " << half_hour;
    EXPECT_NEAR(gpu.joules(2) - gemm, 1800 * 280, 0.1 * 1800 * 280) << "half hour " << half_hour;
  }
}

TEST(JointEstimator, ForgetsWhoIsForgotten) {
  Gpu gpu;
  gpu.run(5, {{1, &kGemm, 1, 1}});
  gpu.estimator.forget(1, {1, 1});
  EXPECT_EQ(gpu.joules(1), 0);
  gpu.run(5, {{1, &kGemm, 1, 1}});
  EXPECT_NEAR(gpu.joules(1), 2800, 1e-6);
}

}  // namespace
}  // namespace gpuledger::attribute
