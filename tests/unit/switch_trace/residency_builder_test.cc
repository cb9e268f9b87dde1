// SPDX-License-Identifier: Apache-2.0
#include "sample/switch_trace/residency_builder.h"

#include <gmock/gmock.h>

#include "sample/switch_trace/rm_abi.h"

namespace gpuledger::switch_trace {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Nanoseconds kStart = seconds(100);
constexpr uint16_t kWholeGpu = 0xFFFF;

class Builder : public ::testing::Test {
 protected:
  Builder() { builder_.begin(kStart); }

  void on(Pid pid, Nanoseconds at, uint16_t engine = kWholeGpu) {
    builder_.take({true, kStart + at, pid, pid + 100, engine});
  }
  void off(Pid pid, Nanoseconds at, uint16_t engine = kWholeGpu) {
    builder_.take({false, kStart + at, pid, pid + 100, engine});
  }
  std::vector<ResidencyBin> bins(Nanoseconds until) {
    builder_.complete_until(kStart + until);
    return builder_.take_bins();
  }
  // When each bin ended, in ms since the start.
  static std::vector<int64_t> ends(const std::vector<ResidencyBin>& bins) {
    std::vector<int64_t> ends;
    for (const ResidencyBin& bin : bins) ends.push_back((bin.end - kStart) / milliseconds(1));
    return ends;
  }

  ResidencyBuilder builder_;
};

TEST_F(Builder, TheOwnerBeforeTheFirstSwitchIsUnknown) {
  EXPECT_THAT(bins(milliseconds(45)), IsEmpty());
  on(7, milliseconds(50));
  EXPECT_THAT(ends(bins(milliseconds(101))), ElementsAre(80, 100));
  const SwitchCounts counts = builder_.take_counts();
  EXPECT_EQ(counts.unknown, milliseconds(50));
  EXPECT_EQ(counts.switches, 1u);
}

TEST_F(Builder, AFirstEndSaysNothingOfTheTimeBefore) {
  off(7, milliseconds(10));
  on(8, milliseconds(20));
  const auto got = bins(milliseconds(45));
  ASSERT_THAT(ends(got), ElementsAre(40));
  EXPECT_THAT(got[0].residents, ElementsAre(Residency{8, milliseconds(20), milliseconds(0)}));
}

TEST_F(Builder, AnOpenSliceIsHandedOnWithoutItsEnd) {
  on(7, milliseconds(0));
  size_t count = 0;
  for (int turn = 1; turn <= 50; ++turn) count += bins(turn * milliseconds(200)).size();
  EXPECT_EQ(count, 500u);
  off(7, seconds(10));
  const auto rest = bins(seconds(11));
  ASSERT_THAT(rest, SizeIs(50));
  EXPECT_THAT(rest.front().residents, IsEmpty());  // it has left, and nobody came
}

TEST_F(Builder, ShortSlicesThatAnotherEndsAreContended) {
  Nanoseconds at{0};
  for (int turn = 0; turn < 100; ++turn) {
    const Pid pid = turn % 2 == 0 ? 7 : 8;
    const Nanoseconds slice = pid == 7 ? microseconds(2200) : microseconds(440);
    on(pid, at);
    off(pid, at + slice);
    at += slice + microseconds(80);
  }
  const auto got = bins(milliseconds(130));
  ASSERT_THAT(got, SizeIs(6));
  Nanoseconds first{0}, second{0};
  for (const ResidencyBin& bin : got) {
    ASSERT_THAT(bin.residents, SizeIs(2));
    for (const Residency& resident : bin.residents) {
      EXPECT_EQ(resident.contended, resident.resident);
      (resident.pid == 7 ? first : second) += resident.resident;
    }
  }
  const double share = static_cast<double>(first.count()) / static_cast<double>((first + second).count());
  EXPECT_NEAR(share, 2200.0 / 2640, 0.01);
  EXPECT_NEAR(static_cast<double>((first + second).count()), 120e6 * 2640 / 2800, 2e6);
}

TEST_F(Builder, ALongSliceIsNotContendedThoughAnotherEndsIt) {
  on(7, milliseconds(0));
  off(7, microseconds(2300));
  on(8, microseconds(2380));
  const auto got = bins(milliseconds(21));
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_THAT(got[0].residents, ElementsAre(Residency{7, microseconds(2300), milliseconds(0)},
                                            Residency{8, microseconds(17620), milliseconds(0)}));
}

TEST_F(Builder, ASliceThatNobodyWantedToEndIsNotContended) {
  on(7, milliseconds(0));
  off(7, microseconds(500));
  on(7, microseconds(600));  // the same context again
  off(7, microseconds(1100));
  const auto got = bins(milliseconds(25));  // and then nobody
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_THAT(got[0].residents, ElementsAre(Residency{7, milliseconds(1), milliseconds(0)}));
}

TEST_F(Builder, TheTimeBetweenTwoContextsBelongsToNobody) {
  on(7, milliseconds(0));
  off(7, milliseconds(1));
  on(8, microseconds(1090));
  off(8, milliseconds(3));
  on(7, milliseconds(10));  // the engine was empty for 7 ms: no switch takes so long
  (void)bins(milliseconds(40));
  EXPECT_EQ(builder_.take_counts().switching, microseconds(90));
}

TEST_F(Builder, CountsSwitchesByProcess) {
  on(7, milliseconds(0));
  off(7, milliseconds(1));
  on(8, milliseconds(1));
  off(8, milliseconds(2));
  on(7, milliseconds(2));
  const SwitchCounts counts = builder_.take_counts();
  EXPECT_EQ(counts.switches, 3u);
  EXPECT_THAT(counts.switches_by_process, ElementsAre(std::pair(7, 2), std::pair(8, 1)));
  EXPECT_EQ(builder_.take_counts().switches, 0u);
}

TEST_F(Builder, WhatDoesNotFitIsUnknown) {
  on(7, milliseconds(0));
  on(8, milliseconds(30));    // the end of 7 was lost
  off(9, milliseconds(50));   // the end of 8 and the start of 9 were
  off(10, milliseconds(70));  // and the start of 10
  on(7, milliseconds(70));
  EXPECT_THAT(ends(bins(milliseconds(121))), ElementsAre(100, 120));
  const SwitchCounts counts = builder_.take_counts();
  EXPECT_EQ(counts.doubtful, 3u);
  EXPECT_EQ(counts.unknown, milliseconds(70));
}

TEST_F(Builder, NothingGoesOnOverALoss) {
  on(7, milliseconds(0));
  (void)bins(milliseconds(60));
  builder_.lose_track();
  on(7, milliseconds(115));
  EXPECT_THAT(ends(bins(milliseconds(161))), ElementsAre(140, 160));
  EXPECT_EQ(builder_.take_counts().unknown, milliseconds(55));
}

TEST_F(Builder, HiddenTimeIsUnknownAndTheKernelsIsNobodys) {
  on(kHiddenPid, milliseconds(0));
  off(kHiddenPid, milliseconds(20));
  on(kKernelPid, milliseconds(20));
  off(kKernelPid, milliseconds(40));
  on(7, milliseconds(40));
  const auto got = bins(milliseconds(61));
  ASSERT_THAT(ends(got), ElementsAre(40, 60));
  EXPECT_THAT(got[0].residents, IsEmpty());
  const SwitchCounts counts = builder_.take_counts();
  EXPECT_THAT(counts.switches_by_process, ElementsAre(std::pair(7, 1)));
}

TEST_F(Builder, AnEventFromBeforeTheTraceCountsFromItsStart) {
  on(7, milliseconds(-2));
  off(7, milliseconds(1));
  on(8, microseconds(1080));
  const auto got = bins(milliseconds(21));
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].residents[0].resident, milliseconds(1));
  EXPECT_EQ(builder_.take_counts().unknown, milliseconds(0));
}

TEST_F(Builder, WhatComesLateMakesTheRestUnknown) {
  on(7, milliseconds(0));
  EXPECT_THAT(bins(milliseconds(100)), SizeIs(5));
  off(7, milliseconds(50));
  on(8, milliseconds(51));
  EXPECT_THAT(ends(bins(milliseconds(161))), ElementsAre(120, 140, 160));
  EXPECT_EQ(builder_.take_counts().late, 2u);
}

TEST_F(Builder, MigInstancesHaveTheirOwnEngines) {
  on(7, milliseconds(0), 0x0100);
  on(8, milliseconds(0), 0x0200);
  off(8, milliseconds(10), 0x0200);
  on(9, milliseconds(10), 0x0200);
  const auto got = bins(milliseconds(21));
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_THAT(got[0].residents, ElementsAre(Residency{7, milliseconds(20), milliseconds(0)},
                                            Residency{8, milliseconds(10), milliseconds(0)},
                                            Residency{9, milliseconds(10), milliseconds(0)}));
}

TEST_F(Builder, BetweenTwoBurstsThereIsNothing) {
  on(7, milliseconds(0));
  builder_.end(kStart + milliseconds(45));
  EXPECT_THAT(ends(builder_.take_bins()), ElementsAre(20, 40));
  on(8, milliseconds(500));
  EXPECT_THAT(bins(milliseconds(900)), IsEmpty());
  builder_.begin(kStart + milliseconds(1005));
  on(8, milliseconds(1010));
  EXPECT_THAT(ends(bins(milliseconds(1061))), ElementsAre(1040, 1060));
}

TEST_F(Builder, NoBinHoldsMoreThanItsWidth) {
  Nanoseconds at{0};
  uint64_t random = 1;
  for (int i = 0; i < 20'000; ++i) {
    random = random * 6364136223846793005 + 1442695040888963407;
    const Pid pid = static_cast<Pid>(random >> 61) + 1;
    at += microseconds((random >> 33) % 3000);
    if ((random >> 20) % 97 == 0) builder_.lose_track();
    if ((random >> 25) % 3 == 0) {
      off(pid, at);
    } else {
      on(pid, at);
    }
    if (i % 50 != 0) continue;
    for (const ResidencyBin& bin : bins(at - milliseconds(5))) {
      Nanoseconds sum{0};
      for (const Residency& resident : bin.residents) {
        sum += resident.resident;
        ASSERT_LE(resident.contended, resident.resident);
      }
      ASSERT_LE(sum, bin.width);
    }
  }
}

}  // namespace
}  // namespace gpuledger::switch_trace
