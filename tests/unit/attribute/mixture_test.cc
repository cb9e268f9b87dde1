#include "attribute/mixture.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attribute/unmix.h"

namespace gpuledger::attribute {
namespace {

constexpr double kFull = 700;

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
};

Observed step_of(const std::vector<Worker>& workers, bool activity = true) {
  Observed step;
  step.seconds = 1;
  step.full_watts = kFull;
  double watts = 0;
  double parts[6] = {};
  for (const Worker& w : workers) {
    watts += w.share * w.work->watts;
    parts[0] += w.share * w.work->sm;
    parts[1] += w.share * w.work->occupancy;
    parts[2] += w.share * w.work->tensor;
    parts[3] += w.share * w.work->dram;
    parts[4] += w.share * w.work->fp32;
    step.who.push_back({w.account, {static_cast<Pid>(w.account), w.account}, w.caught});
  }
  step.dynamic_joules = watts;
  step.shown[0] = watts / kFull;
  for (size_t i = 0; activity && i < 6; ++i) step.shown[1 + i] = parts[i];
  return step;
}

void run(Mixture& mixture, int seconds, const std::vector<Worker>& workers, bool activity = true) {
  for (int i = 0; i < seconds; ++i) mixture.advance(step_of(workers, activity));
}

TEST(Unmix, FindsTheSharesOfTwoKnownSources) {
  const std::vector<Clue> clues = {{0.8 * 0.3 + 0.1 * 0.6, 0.01, 0.01}, {0.9 * 0.6, 0.01, 0.01}, {0.45, 0.01, 0.01}};
  const std::vector<Source> sources = {{.parts = {0.8, 0.0, 0.5}}, {.parts = {0.1, 0.9, 0.5}}};
  const Unmixed result = unmix(clues, sources);
  EXPECT_NEAR(result.shares[0], 0.3, 1e-3);
  EXPECT_NEAR(result.shares[1], 0.6, 1e-3);
  EXPECT_LT(result.misfit, 0.01);
}

TEST(Unmix, TellsTwoOfAKindApartByTheirOwnClues) {
  const std::vector<Clue> clues = {{0.8, 0.01, 0.01}};
  const std::vector<Source> sources = {{.parts = {1}, .own_part = 1, .own_seen = 0.2, .own_error = 0.1},
                                       {.parts = {1}, .own_part = 1, .own_seen = 0.6, .own_error = 0.1}};
  const Unmixed result = unmix(clues, sources);
  EXPECT_NEAR(result.shares[0], 0.2, 1e-3);
  EXPECT_NEAR(result.shares[1], 0.6, 1e-3);
}

TEST(Unmix, KeepsToTheBoundsAndSaysHowBadlyItFits) {
  const std::vector<Clue> clues = {{2.0, 0.1, 0.1}};
  const std::vector<Source> sources = {{.parts = {1.0}}};
  const Unmixed result = unmix(clues, sources);
  EXPECT_DOUBLE_EQ(result.shares[0], 1);
  EXPECT_NEAR(result.misfit, 10, 1e-6);
}

TEST(Mixture, AloneIsAllOfItAndWithoutDoubt) {
  Mixture mixture;
  run(mixture, 10, {{1, &kGemm, 1, 1}});
  EXPECT_NEAR(mixture.fair(1), 5600, 1e-6);
  EXPECT_EQ(mixture.doubt(1), 0);
}

TEST(Mixture, NewcomerPaysForWhatTheKnownOneDoesNotExplain) {
  Mixture mixture;
  run(mixture, 10, {{1, &kGemm, 1, 1}});
  const double before = mixture.fair(1);
  run(mixture, 20, {{1, &kGemm, 0.3, 0.4}, {2, &kCopy, 0.6, 0.6}});  // samples off by a tenth
  EXPECT_NEAR(mixture.fair(1) - before, 20 * 0.3 * 560, 600);
  EXPECT_NEAR(mixture.fair(2), 20 * 0.6 * 320, 600);
  EXPECT_GT(mixture.doubt(2), 0);
}

TEST(Mixture, ASpinLoopIsBusyAndFree) {
  Mixture mixture;
  run(mixture, 10, {{1, &kSpin, 1, 1}});
  run(mixture, 20, {{1, &kSpin, 0.5, 0.5}, {2, &kGemm, 0.5, 0.5}});
  EXPECT_NEAR(mixture.fair(1), 0, 50);
  EXPECT_NEAR(mixture.fair(2), 20 * 280, 50);
}

TEST(Mixture, TwoOfAKindAreToldApartByTheSamples) {
  Mixture mixture;
  run(mixture, 10, {{1, &kGemm, 1, 1}});
  const double before = mixture.fair(1);
  run(mixture, 60, {{1, &kGemm, 0.5, 0.5}, {2, &kGemm, 0.5, 0.5}});
  EXPECT_NEAR(mixture.fair(1) - before, 60 * 280, 60 * 25);
  EXPECT_NEAR(mixture.fair(2), 60 * 280, 60 * 25);
}

TEST(Mixture, AFourthOfAKindPaysToo) {
  Mixture mixture;
  for (uint64_t account : {1, 2, 3}) run(mixture, 6, {{account, &kGemm, 1, 1}});
  run(mixture, 15, {{1, &kGemm, 0.33, 0.33}, {2, &kGemm, 0.33, 0.33}, {3, &kGemm, 0.33, 0.33}});
  run(mixture, 20,
      {{1, &kGemm, 0.25, 0.25}, {2, &kGemm, 0.25, 0.25}, {3, &kGemm, 0.25, 0.25}, {4, &kGemm, 0.25, 0.25}});
  EXPECT_NEAR(mixture.fair(4), 20 * 140, 0.3 * 20 * 140) << "though the three could have used it all";
}

TEST(Mixture, LaterKnowledgeCorrectsThePast) {
  Mixture mixture;
  // Strangers that share from the start: only time tells them apart, and it says half and half.
  run(mixture, 20, {{1, &kGemm, 0.5, 0.5}, {2, &kCopy, 0.5, 0.5}});
  EXPECT_NEAR(mixture.fair(1), 20 * (280 + 160) / 2, 1);
  const double doubt_of_strangers = mixture.doubt(1);
  run(mixture, 10, {{2, &kCopy, 1, 1}});
  EXPECT_NEAR(mixture.fair(1), 20 * 280, 300);
  EXPECT_NEAR(mixture.fair(2), 20 * 160 + 10 * 320, 300);
  EXPECT_LT(mixture.doubt(1), doubt_of_strangers / 2);
}

TEST(Mixture, NothingIsLostInRevisions) {
  Mixture mixture;
  run(mixture, 20, {{1, &kGemm, 0.5, 0.5}, {2, &kCopy, 0.5, 0.5}});
  run(mixture, 10, {{2, &kCopy, 1, 1}});
  run(mixture, 10, {{2, &kCopy, 0.6, 0.5}, {3, &kSpin, 0.4, 0.5}});
  EXPECT_NEAR(mixture.fair(1) + mixture.fair(2) + mixture.fair(3), 20 * 440 + 3200 + 10 * 0.6 * 320, 1e-6);
}

TEST(Mixture, AHolderThatIsNeverCaughtPaysNothing) {
  Mixture mixture;
  run(mixture, 40, {{1, &kGemm, 1, 1}, {2, &kNothing, 0, 0}});
  EXPECT_LT(mixture.fair(2), 0.03 * mixture.fair(1));
}

TEST(Mixture, AHolderIsNoMoreLikelyToWorkInANewPhase) {
  Mixture mixture;
  run(mixture, 3, {{1, &kGemm, 1, 1}, {2, &kNothing, 0, 0}});
  run(mixture, 1, {{1, &kCopy, 1, 1}, {2, &kNothing, 0, 0}});
  EXPECT_LT(mixture.last_part(2), 0.03 * mixture.last_part(1)) << "15 samples missed it before these 5";
}

TEST(Mixture, WhoStopsWorkingStopsPaying) {
  Mixture mixture;
  run(mixture, 10, {{1, &kGemm, 0.5, 0.5}, {2, &kGemm, 0.5, 0.5}});
  run(mixture, 6, {{1, &kGemm, 1, 1}, {2, &kNothing, 0, 0}});
  const double after_a_while = mixture.fair(2);
  run(mixture, 30, {{1, &kGemm, 1, 1}, {2, &kNothing, 0, 0}});
  EXPECT_LE(mixture.fair(2), after_a_while + 1);
}

TEST(Mixture, MpsClientsAreToldApartByWhenTheyAreThere) {
  const auto mps = [](std::vector<Worker> workers) {
    Observed step = step_of(workers);
    step.mps = true;
    return step;
  };
  constexpr Work small{65, 0.23, 0.03, 0, 0, 0.17};
  Mixture mixture;
  for (int i = 0; i < 10; ++i) mixture.advance(mps({{1, &small, 1, 0}}));
  for (int i = 0; i < 10; ++i) mixture.advance(mps({{1, &small, 1, 0}, {2, &small, 1, 0}}));
  for (int i = 0; i < 10; ++i) mixture.advance(mps({{1, &small, 1, 0}, {2, &small, 1, 0}, {3, &kSpin, 1, 0}}));
  EXPECT_NEAR(mixture.fair(1), 30 * 65, 150);
  EXPECT_NEAR(mixture.fair(2), 20 * 65, 150);
  EXPECT_NEAR(mixture.fair(3), 0, 150);
}

TEST(Mixture, OneThatChangesItsWaysIsFoundOut) {
  Mixture mixture;
  run(mixture, 10, {{1, &kSpin, 1, 1}});  // loads its data, polling
  run(mixture, 10, {{2, &kCopy, 1, 1}});
  const double before = mixture.fair(2);
  run(mixture, 20, {{1, &kGemm, 0.5, 0.5}, {2, &kCopy, 0.5, 0.5}});  // and then it multiplies
  EXPECT_NEAR(mixture.fair(1), 20 * 280, 800);
  EXPECT_NEAR(mixture.fair(2) - before, 20 * 160, 800);
}

TEST(Mixture, WarmingUpIsNotWhatItWillDo) {
  constexpr Work warming{40, 0.03, 0.01, 0.02, 0.01, 0.0};
  Mixture mixture;
  run(mixture, 2, {{1, &warming, 1, 0}});
  run(mixture, 20, {{1, &kGemm, 0.5, 0.5}, {2, &kGemm, 0.5, 0.5}});
  EXPECT_NEAR(mixture.fair(2), 20 * 280, 800) << "not all of it, though the other was seen cheap";
}

TEST(Mixture, WhoWasThereWhileNothingWasSpentIsNoStranger) {
  // Two spin loops that were never alone, then somebody who multiplies: nobody's signature is known, but the
  // spinners were caught busy while the GPU drew next to nothing.
  Mixture mixture;
  run(mixture, 8, {{1, &kSpin, 0.6, 0.6}, {2, &kSpin, 0.4, 0.4}});
  run(mixture, 10, {{1, &kSpin, 0.4, 0.4}, {2, &kSpin, 0.3, 0.3}, {3, &kGemm, 0.3, 0.3}});
  EXPECT_GT(mixture.fair(3), 0.5 * 10 * 0.3 * 560);
  EXPECT_LT(mixture.fair(1), 0.1 * 10 * 0.3 * 560);
}

TEST(Mixture, SamplesOfOnePhaseSayNothingAboutAnother) {
  Mixture mixture;
  run(mixture, 10, {{1, &kGemm, 1, 1}});
  run(mixture, 30, {{1, &kGemm, 1, 1}, {2, &kNothing, 0, 0}});
  const double before = mixture.fair(2);
  run(mixture, 5, {{1, &kGemm, 0.5, 0.5}, {2, &kCopy, 0.5, 0.5}});  // 150 samples said that it rests
  EXPECT_NEAR(mixture.fair(2) - before, 5 * 160, 5 * 40);
}

TEST(Mixture, ANewcomerIsNotKnownByItsRest) {
  Mixture mixture;
  run(mixture, 10, {{1, &kGemm, 1, 1}});
  run(mixture, 4, {{1, &kGemm, 1, 1}, {2, &kNothing, 0, 0}});  // loads its data
  run(mixture, 3, {{1, &kGemm, 0.5, 0.5}, {2, &kCopy, 0.5, 0.5}});
  const double before = mixture.fair(2);
  run(mixture, 10, {{2, &kCopy, 0.8, 0.8}, {3, &kSpin, 0.2, 0.2}});
  EXPECT_NEAR(mixture.fair(2) - before, 10 * 0.8 * 320, 800) << "its seconds of loading are not what it costs";
}

TEST(Mixture, WhoWasMissedWhileTheGpuLookedTheSameWasAtWork) {
  Mixture mixture;
  run(mixture, 16, {{1, &kGemm, 0.5, 0}, {2, &kCopy, 0.5, 1}});  // samples in step with the other
  EXPECT_LT(mixture.doubt(1), 300) << "nothing speaks against it yet";
  run(mixture, 10, {{1, &kGemm, 0.5, 0.8}, {2, &kCopy, 0.5, 0.2}});
  EXPECT_LE(std::abs(mixture.fair(1) - 26 * 280), 2 * mixture.doubt(1)) << "never seen apart: a wide error";
  EXPECT_LE(std::abs(mixture.fair(2) - 26 * 160), 2 * mixture.doubt(2));
}

TEST(Mixture, TwoOfAKindThatTakeTurnsKeepWhatTheySpent) {
  Mixture mixture;
  run(mixture, 60, {{1, &kGemm, 1, 1}, {2, &kNothing, 0, 0}});
  run(mixture, 20, {{1, &kNothing, 0, 0}, {2, &kGemm, 1, 1}});  // the GPU looks the same all the time
  EXPECT_NEAR(mixture.fair(1), 60 * 560, 8 * 560);
  EXPECT_NEAR(mixture.fair(2), 20 * 560, 8 * 560);
  run(mixture, 60, {{1, &kNothing, 0, 0}, {2, &kGemm, 1, 1}});
  EXPECT_NEAR(mixture.fair(1), 60 * 560, 8 * 560);
}

TEST(Mixture, WhoTakesOverDidNotWorkBefore) {
  Mixture mixture;
  run(mixture, 12, {{1, &kGemm, 1, 1}, {2, &kNothing, 0, 0}});
  const double before = mixture.fair(1);
  run(mixture, 4, {{1, &kNothing, 0, 0}, {2, &kGemm, 1, 1}});
  EXPECT_GT(mixture.fair(1), 0.9 * before);
  EXPECT_LT(mixture.doubt(1), 0.2 * before) << "20 samples that missed it are no proof that it never was alone";
}

TEST(Mixture, APauseDoesNotMakeAWorkerRare) {
  Observed pause = step_of({{1, &kNothing, 0, 0}, {2, &kNothing, 0, 0}});
  pause.quiet = true;
  Mixture mixture;
  run(mixture, 8, {{1, &kGemm, 1, 1}});
  run(mixture, 30, {{1, &kGemm, 0.5, 0.5}, {2, &kGemm, 0.5, 0.5}});
  const double before = mixture.last_part(2);
  for (int i = 0; i < 90; ++i) mixture.advance(pause);
  run(mixture, 1, {{1, &kGemm, 0.5, 0.5}, {2, &kGemm, 0.5, 0.5}});
  EXPECT_NEAR(mixture.last_part(2), before, 5);
}

TEST(Mixture, AHolderThatBeginsToWorkDoesNotUndoWhatWasLearnedBesideIt) {
  Mixture mixture;
  run(mixture, 20, {{1, &kGemm, 1, 1}, {2, &kNothing, 0, 0}});
  run(mixture, 20, {{1, &kGemm, 0.5, 0.5}, {2, &kSpin, 0.5, 0.5}});
  EXPECT_LT(mixture.fair(2), 0.06 * mixture.fair(1)) << "the look changed when it began: before, the other was alone";
}

TEST(Mixture, StrangersNeedAnSmForEveryWarp) {
  // Both are bound by memory, so dram and watts could all be the known one's. Warps could not.
  constexpr Work matvec{406, 0.81, 0.11, 0.03, 0.80, 0.0};
  constexpr Work gelu{430, 0.80, 0.66, 0.0, 0.54, 0.18};
  Mixture mixture;
  run(mixture, 10, {{1, &matvec, 1, 1}});
  const double before = mixture.fair(1);
  run(mixture, 3, {{1, &matvec, 0.45, 0.75}, {2, &gelu, 0.55, 0.25}});  // few samples, and unlucky ones
  EXPECT_LT(mixture.fair(1) - before, 1.45 * 3 * 0.45 * 406);
}

TEST(Mixture, AnMpsClientMayShowMoreWhenOthersGo) {
  const auto mps = [](const std::vector<Worker>& workers) {
    Observed step = step_of(workers);
    step.mps = true;
    return step;
  };
  constexpr Work gather{110, 0.98, 0.17, 0.0, 0.18, 0.0};
  Mixture mixture;
  for (int i = 0; i < 5; ++i) mixture.advance(mps({{1, &kCopy, 1, 0}}));
  for (int i = 0; i < 8; ++i) mixture.advance(mps({{1, &kCopy, 0.5, 0}, {2, &gather, 0.3, 0}}));
  for (int i = 0; i < 8; ++i) mixture.advance(mps({{1, &kCopy, 0.3, 0}, {2, &gather, 0.3, 0}, {3, &kGemm, 0.4, 0}}));
  const double before = mixture.fair(3);
  for (int i = 0; i < 10; ++i) mixture.advance(mps({{2, &gather, 0.3, 0}, {3, &kGemm, 0.7, 0}}));
  EXPECT_GT(mixture.fair(3) - before, 0.75 * 10 * 0.7 * 560) << "not half of it, though neither was ever alone";
}

TEST(Mixture, WorksWithPowerAloneOnGpusWithoutActivity) {
  Mixture mixture;
  run(mixture, 10, {{1, &kSpin, 1, 1}}, false);
  run(mixture, 20, {{1, &kSpin, 0.5, 0.5}, {2, &kGemm, 0.5, 0.5}}, false);
  EXPECT_NEAR(mixture.fair(2), 20 * 280, 100);
}

TEST(Mixture, ForgetsWhoIsForgotten) {
  Mixture mixture;
  run(mixture, 5, {{1, &kGemm, 1, 1}});
  mixture.forget(1);
  EXPECT_EQ(mixture.fair(1), 0);
  run(mixture, 5, {{1, &kGemm, 1, 1}});
  EXPECT_NEAR(mixture.fair(1), 2800, 1e-6);
}

}  // namespace
}  // namespace gpuledger::attribute
