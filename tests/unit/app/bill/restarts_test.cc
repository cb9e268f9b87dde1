// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/app/bill/bill_fixture.h"

namespace gpuledger::app {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// What an exporter keeps or forgets when it starts again.
class Restarts : public Bill {
 protected:
  // Those that started then go on with the books of those before.
  void read_state(double started) {
    for (FakeScrape& one : server_.scrapes) {
      if (one.started != started) continue;
      one.opened = -1e6;
      one.booted = -1e6 - 60;
      one.run = 2;
    }
  }
};

TEST_F(Restarts, ARestartWithItsStateGoesOn) {
  run("n", 0, kHour, 0);
  server_.scrape("n", kHour + 60);  // the scrape fails
  run("n", kHour + 1200, 3 * kHour, 100.0 * (kHour + 1200), 100, kHour + 1000);
  read_state(kHour + 1000);
  const Statement statement = good();
  EXPECT_TRUE(statement.complete());
  EXPECT_EQ(statement.meter_millijoules, 3 * kHour * 100 * 1000);
  EXPECT_THAT(statement.remarks, SizeIs(0));
}

TEST_F(Restarts, ARestartWithoutStateCountsBothRuns) {
  run("n", 0, kHour + 1200, 1'000'000);                       // 480 kJ in the span
  run("n", kHour + 1260, 3 * kHour, 500, 100, kHour + 1250);  // 500 J at its first scrape
  const Statement statement = good();
  EXPECT_EQ(line(statement, "team").own_millijoules(),
            (100LL * (kHour + 1200) + 500 + 100LL * ((3 * kHour - kHour - 1260) / 60 * 60)) * 1000);
  ASSERT_THAT(statement.remarks, SizeIs(1));
  EXPECT_THAT(statement.remarks[0], HasSubstr("n: restarted without --state-file at"));
  EXPECT_TRUE(statement.complete()) << "50 s are no gap";
}

TEST_F(Restarts, ALongTimeWithoutAnExporterThatKeepsNoStateIsAGap) {
  run("n", 0, kHour, 1'000'000);
  server_.scrape("n", kHour + 15);
  run("n", 2 * kHour + 600, 3 * kHour, 500, 100, 2 * kHour + 590);
  const auto statement = bill();
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  EXPECT_FALSE(statement->complete());
  ASSERT_THAT(statement->gaps, SizeIs(1));
  EXPECT_EQ(statement->gaps[0].node, "n");
  EXPECT_EQ(statement->gaps[0].span.begin.time_since_epoch().count(), kBegin + kHour);
  EXPECT_EQ(statement->gaps[0].span.end.time_since_epoch().count(), kBegin + 2 * kHour + 590);
}

TEST_F(Restarts, ARestartBetweenTwoStepsThatEndsHigherIsSeen) {
  // 100 J, then a new run that has 40 kJ when the hour ends: the counter never looks lower.
  server_.scrape("n", 0).pod("team", "a", 100);
  server_.scrape("n", 600).pod("team", "a", 10'000);
  auto& again = server_.scrape("n", 1200).pod("team", "a", 400);
  again.started = 1190;
  auto& last = server_.scrape("n", kHour).pod("team", "a", 40'000);
  last.started = 1190;
  const Statement statement = good(1);
  EXPECT_EQ(statement.meter_millijoules, (10'000 - 100 + 40'000) * 1000);
}

TEST_F(Restarts, ARestartWithoutStateThatNobodySawCountsBothRuns) {
  // Nobody scrapes from one hour to three; meanwhile the node restarts, and its new counter is higher than the old one.
  for (const bool same_namespace : {false, true}) {
    server_.scrapes.clear();
    run("n", 0, kHour, 1000);
    for (int64_t at = 3 * kHour; at <= 4 * kHour; at += 60) {
      FakeScrape& one = server_.scrape("n", at);
      one.started = kHour + 60;
      one.pod(same_namespace ? "team" : "other", "b", 400.0 * static_cast<double>(at - kHour - 60));
    }
    const auto statement = bill(4);
    ASSERT_TRUE(statement.ok()) << statement.error().message;
    EXPECT_EQ(statement->sum_millijoules(), statement->meter_millijoules);
    const int64_t before = 100 * kHour * 1000, after = 400 * (3 * kHour - 60) * 1000;
    EXPECT_EQ(statement->meter_millijoules, before + after);
    EXPECT_EQ(line(*statement, "team").own_millijoules(), before + (same_namespace ? after : 0));
    EXPECT_TRUE(statement->complete()) << "a minute is no gap";
    ASSERT_THAT(statement->remarks, SizeIs(1));
    EXPECT_THAT(statement->remarks[0], HasSubstr("n: restarted without --state-file at"));
    view_.by = {"pod"};
    ASSERT_FALSE(good(4).lines.empty());
    for (const BillLine& one : good(4).lines) EXPECT_GE(one.own_millijoules(), 0) << one.name;
    view_.by = {"namespace"};
  }
}

TEST_F(Restarts, ARestartWithStateThatNobodySawGoesOn) {
  run("n", 0, kHour, 1000);
  for (int64_t at = 3 * kHour; at <= 4 * kHour; at += 60) {
    FakeScrape& one = server_.scrape("n", at);
    one.started = kHour + 60;
    // Pod a ended meanwhile, with a little more than it had.
    one.pod("other", "b", 400.0 * static_cast<double>(at - kHour - 60)).closed("team", 1000 + 100 * kHour + 30);
    one.nobody("idle", 50).nobody("exporter_down", 7);
  }
  read_state(kHour + 60);
  const Statement statement = good(4);
  EXPECT_TRUE(statement.complete());
  EXPECT_THAT(statement.remarks, SizeIs(0));
  EXPECT_EQ(line(statement, "team").own_millijoules(), (100 * kHour + 30) * 1000);
}

TEST_F(Restarts, OtherBooksBeginAgainAlthoughAllIsHigher) {
  const int64_t before = 100 * kHour * 1000, after = 400 * (3 * kHour - 60) * 1000, past = 1'000'000;
  for (const bool keeps_state : {false, true}) {
    server_.scrapes.clear();
    run("n", 0, kHour, 1000);
    for (int64_t at = 3 * kHour; at <= 4 * kHour; at += 60) {
      FakeScrape& one = server_.scrape("n", at);
      one.started = kHour + 60;
      one.pod("team", "a", 400.0 * static_cast<double>(at - kHour - 60)).nobody("idle", 50);
    }
    if (keeps_state) read_state(kHour + 60);
    const Statement statement = good(4);
    EXPECT_EQ(line(statement, "team").own_millijoules(), keeps_state ? after - past : before + after);
    EXPECT_THAT(statement.remarks, SizeIs(keeps_state ? 0 : 1));
  }
}

TEST_F(Restarts, ARestartShortlyAfterTheLastScrapeBeforeAStepIsSeen) {
  run("n", 0, 2 * kHour - 120, 1'000'000);  // at two hours the server still shows it
  for (int64_t at = 4 * kHour; at <= 5 * kHour; at += 60) {
    FakeScrape& one = server_.scrape("n", at);
    one.started = 2 * kHour - 100;
    one.pod("other", "b", 400.0 * (static_cast<double>(at) - one.started));
  }
  const Statement statement = good(5);
  EXPECT_EQ(statement.meter_millijoules, (100 * (2 * kHour - 120) + 400 * (3 * kHour + 100)) * 1000);
}

TEST_F(Restarts, WhatCountersForgotIsNeverACredit) {
  // Neither books nor starts are known: the bill must not look complete.
  server_.tells_books = server_.knows_starts = false;
  server_.scrape("n", 0).pod("team", "a", 100);
  server_.scrape("n", kHour).pod("team", "a", 500'000);
  server_.scrape("n", 3 * kHour).pod("other", "b", 700'000);
  view_.by = {"pod"};
  const auto statement = bill();
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  ASSERT_THAT(statement->gaps, SizeIs(1));
  EXPECT_EQ(statement->gaps[0].node, "n GPU-n-0");
  EXPECT_EQ(statement->gaps[0].why,
            "pods that ended namespace=team has 138.889 Wh less at the end than at the begin; "
            "its counter was lost");
}

TEST_F(Restarts, AnOlderStateFileDoesNotBillThePastAgain) {
  const double past = 5e9;
  server_.scrape("n", 0).pod("team", "a", past);
  server_.scrape("n", 1800).pod("team", "a", past + 1000);
  auto& again = server_.scrape("n", 1815).pod("team", "a", past + 900);
  again.started = 1810;
  auto& last = server_.scrape("n", kHour).pod("team", "a", past + 2000);
  last.started = 1810;
  read_state(1810);
  const Statement statement = good(1);
  EXPECT_EQ(statement.meter_millijoules, (1000 + 1100) * 1000);
  ASSERT_THAT(statement.remarks, SizeIs(1));
  EXPECT_THAT(statement.remarks[0], HasSubstr("older state"));
}

TEST_F(Restarts, ANewNodeThatWasKilledIsNotBilledTwice) {
  // Its state is some seconds older than its last scrape; the reasons have what the owner lost.
  for (const auto& [at, joules, down] : {std::tuple(160, 5000.0, 0.0), std::tuple(220, 11'000.0, 0.0),
                                         std::tuple(235, 10'500.0, 700.0), std::tuple(3600, 20'000.0, 700.0)}) {
    FakeScrape& one = server_.scrape("n", at).pod("team", "a", joules).nobody("exporter_down", down);
    one.started = at < 230 ? 100 : 230;
    one.opened = 100;
    one.booted = 40;
    one.run = at < 230 ? 1 : 2;
  }
  const Statement statement = good(1);
  EXPECT_EQ(statement.meter_millijoules, 20'700'000);
  EXPECT_EQ(line(statement, "team").own_millijoules(), 20'000'000);
}

TEST_F(Restarts, AnExporterThatIsReplacedElsewhereCountsBothRuns) {
  // Two series without a reset, and the counter never looks lower at a step.
  for (const auto& [at, joules] :
       {std::pair(0, 180'000.0), std::pair(300, 185'000.0), std::pair(360, 400.0), std::pair(3600, 990'000.0)}) {
    FakeScrape& one = server_.scrape("n", at).pod("team", "a", joules);
    one.instance = at < 310 ? "pod-1" : "pod-2";
    one.started = at < 310 ? -1e6 : 310;
  }
  EXPECT_EQ(good(1).meter_millijoules, (5'000 + 990'000) * 1000);
}

// What an exporter had when it was last seen is on an earlier bill, whatever it shows when it is seen again.
TEST_F(Restarts, ABillThatBeginsWhileANodeIsAwayDoesNotBillItsPast) {
  run("stays", -2 * kHour, 3 * kHour, 0);
  run("n", -2 * kHour, -600, 0);
  run("n", 600, 3 * kHour, 100.0 * (2 * kHour + 600), 100, 590);  // less than it could have drawn since its start
  read_state(590);
  const auto statement = bill();
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  EXPECT_EQ(statement->meter_millijoules, (3 * kHour + 3 * kHour - 600) * 100 * 1000);
  ASSERT_THAT(statement->gaps, SizeIs(1));
  EXPECT_EQ(statement->gaps[0].node, "n");
  EXPECT_EQ(statement->gaps[0].why, "first seen with counters of an earlier time");
  EXPECT_EQ(statement->gaps[0].span.end.time_since_epoch().count(), kBegin + 600);
}

TEST_F(Restarts, BooksThatWereSeenBeforeTheSpanWereNotOpenedInIt) {
  run("n", -2 * kHour, -600, 0, 100, 60);  // its clock was ahead by more than two hours
  run("n", 600, kHour, 100.0 * (2 * kHour + 600), 100, 60);
  const auto statement = bill(1);
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  EXPECT_EQ(statement->meter_millijoules, (kHour - 600) * 100 * 1000);
  EXPECT_THAT(statement->gaps, SizeIs(1));
}

TEST_F(Restarts, AStateOfAnEarlierRunIsNamedAlthoughAllIsHigher) {
  run("n", 0, kHour, 1e6);
  run("n", 3 * kHour, 4 * kHour, 2e6, 100, 3 * kHour - 60);
  for (FakeScrape& one : server_.scrapes) {
    one.opened = -1e6;
    one.run = one.at <= kHour ? 5 : 4;
  }
  const auto statement = bill(4);
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  EXPECT_EQ(statement->meter_millijoules, 2 * kHour * 100 * 1000);
  ASSERT_THAT(statement->gaps, SizeIs(1));
  EXPECT_EQ(statement->gaps[0].why, "restarted with an older state file");
}

TEST_F(Restarts, AReplacedGpuCountsFromZero) {
  for (int64_t at = 0; at <= 2 * kHour; at += 60) {
    FakeScrape& one = server_.scrape("n", at);
    one.pod("team", "a", 100.0 * static_cast<double>(at)).nobody("idle", 5, "1");
    if (at < kHour) continue;
    one.meters.erase("0");
    std::erase_if(one.series, [](const auto& each) { return each.first.at("gpu") == "0"; });
    one.pod("team", "b", 40.0 * static_cast<double>(at - kHour), 0, "2");
    one.opened_of["2"] = kHour - 20.0;
  }
  const auto statement = bill(2);
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  EXPECT_EQ(statement->meter_millijoules, (100 * (kHour - 60) + 40 * kHour) * 1000);
  ASSERT_THAT(statement->gaps, SizeIs(1)) << "the old one may be in use elsewhere";
  EXPECT_EQ(statement->gaps[0].node, "n GPU-n-0");
}

// A release that does not say when its books were opened.
TEST_F(Restarts, OfAnOlderReleaseNothingIsGuessed) {
  server_.tells_books = false;
  run("stays", 0, 3 * kHour, 0);
  run("new", kHour + 600, 3 * kHour, 500, 100, kHour + 590);
  run("again", 0, kHour, 1000);
  run("again", 2 * kHour, 3 * kHour, 1e6, 100, 2 * kHour - 60);
  const auto statement = bill();
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  EXPECT_EQ(statement->meter_millijoules, 100 * (3 * kHour + 2 * kHour - 600 + 2 * kHour) * 1000);
  ASSERT_THAT(statement->gaps, SizeIs(2));
  EXPECT_EQ(statement->gaps[0].why, "restarted; its release does not say whether its counters went on");
  EXPECT_EQ(statement->gaps[1].why, "first seen then; its release does not say when its counters began at 0");
}

// A machine that ran before its books were opened may have used what nobody metered.
TEST_F(Restarts, ANodeThatRanWithoutAnExporterLacksItsHours) {
  for (const bool new_machine : {false, true}) {
    server_.scrapes.clear();
    run("n", 24 * kHour - 1440, 24 * kHour, 1500, 100, 24 * kHour - 1455);
    for (FakeScrape& one : server_.scrapes) one.booted = new_machine ? 23 * kHour + 1600 : -5 * kHour;
    const auto statement = bill(24);
    ASSERT_TRUE(statement.ok()) << statement.error().message;
    EXPECT_EQ(statement->meter_millijoules, 145'550 * 1000);
    EXPECT_EQ(statement->complete(), new_machine);
    if (new_machine) continue;
    ASSERT_THAT(statement->gaps, SizeIs(1));
    EXPECT_EQ(statement->gaps[0].why, "its books were opened only then");
    EXPECT_EQ(statement->gaps[0].span.end.time_since_epoch().count(), kBegin + 24 * kHour - 1455);
  }
}

// A node without a label `node` is named by its address, which a restart may change.
TEST_F(Restarts, TheSameBooksUnderAnotherNameGoOn) {
  run("10.0.0.1", 600, kHour, 0, 100, 600);
  server_.scrape("10.0.0.1", kHour + 15);
  run("10.0.0.2", kHour + 60, 3 * kHour, 100.0 * (kHour + 60 - 600), 100, kHour + 50);
  for (FakeScrape& one : server_.scrapes) {
    one.card = "GPU-1";
    one.opened = 600;
    one.booted = 540;
    one.run = one.node == "10.0.0.1" ? 1 : 2;
  }
  const Statement statement = good(3);
  EXPECT_TRUE(statement.complete());
  EXPECT_THAT(statement.remarks, SizeIs(0));
  EXPECT_EQ(statement.meter_millijoules, (100 * (3 * kHour - 600) + 50) * 1000);
}

// Of one node, a while each: neither may be counted from 0 again and again.
TEST_F(Restarts, TwoExportersOfANodeThatOverlapAreNotCountedTwice) {
  for (int64_t at = 0; at <= 2 * kHour; at += 60) {
    if (at <= kHour + 600) {
      FakeScrape& one = server_.scrape("n", at).pod("team", "a", 1e6 + 100.0 * static_cast<double>(at));
      one.instance = "old";
    }
    if (at >= kHour) {
      FakeScrape& one = server_.scrape("n", at).pod("team", "a", 100.0 * static_cast<double>(at - kHour + 5));
      one.instance = "new";
      one.started = kHour - 5;
      one.booted = -1e6 - 60;
    }
  }
  const auto statement = bill(2);
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  EXPECT_LE(statement->meter_millijoules, (2 * kHour + 60) * 100 * 1000);
  EXPECT_GE(statement->meter_millijoules, (2 * kHour - 120) * 100 * 1000);
}

// Each loss is short, all of them are most of the time.
TEST_F(Restarts, RestartsWithoutStateAgainAndAgainAddUp) {
  for (int64_t begun = 0; begun < 3 * kHour; begun += 300)
    run("n", begun + 200, begun + 280, 8000, 100, static_cast<double>(begun) + 195);
  for (FakeScrape& one : server_.scrapes) one.booted = -1e6;
  const auto statement = bill(3);
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  EXPECT_FALSE(statement->complete());
  ASSERT_THAT(statement->gaps, SizeIs(::testing::Ge(1U)));
  EXPECT_THAT(statement->gaps.back().why, HasSubstr("restarted without --state-file, 35 times, "));
}

TEST_F(Restarts, AReadingWithoutTheTimeOfItsBooksIsNoRestart) {
  run("n", -240, 3 * kHour, 0, 100, -240);
  server_.untold = 0;  // at the begin they have not arrived yet
  const Statement statement = good(3);
  EXPECT_TRUE(statement.complete());
  EXPECT_EQ(statement.meter_millijoules, 3 * kHour * 100 * 1000);
}

// A second server, whose clock is ahead, has an older copy of a scrape that was taken.
TEST_F(Restarts, AnOlderCopyOfAScrapeIsNoOlderState) {
  for (int64_t at = 0; at <= 2 * kHour; at += 60) {
    for (const std::string replica : {"0", "1"}) {
      FakeScrape& one = server_.scrape("n", at + (replica == "1" ? 20 : 0));
      one.replica = replica;
      one.clock_ahead = replica == "1" ? -20 : 0;
      one.pod("team", "a", 100.0 * static_cast<double>(at));
      one.opened = -1e6;
      one.booted = -1e6;
      one.started = at <= kHour - 600 ? -1e6 : kHour - 590;
      one.run = at <= kHour - 600 ? 1 : 2;
    }
  }
  const Statement statement = good(2);
  EXPECT_EQ(statement.meter_millijoules, 2 * kHour * 100 * 1000);
  EXPECT_THAT(statement.remarks, SizeIs(0));
}

TEST_F(Restarts, AClockThatIsSetIsNoBoot) {
  run("n", 0, 3 * kHour, 0);
  for (FakeScrape& one : server_.scrapes) one.booted = one.at < kHour ? -2e6 : -2e6 + 120;
  EXPECT_THAT(good().remarks, SizeIs(0));
}

TEST_F(Restarts, AGpuThatWasLostAtTheBeginIsNamed) {
  for (const bool comes_back : {false, true}) {
    server_.scrapes.clear();
    for (int64_t at = -kHour; at <= 3 * kHour; at += 60) {
      FakeScrape& one = server_.scrape("n", at);
      one.pod("team", "a", 100.0 * static_cast<double>(at + kHour));
      if (at < -300) one.pod("team", "b", 5, 0, "1");
      if (at < kHour || !comes_back) continue;
      one.pod("team", "b", 10.0 * static_cast<double>(at - kHour), 0, "1");
      one.opened_of["1"] = kHour - 10.0;
    }
    const auto statement = bill();
    ASSERT_TRUE(statement.ok()) << statement.error().message;
    ASSERT_THAT(statement->gaps, SizeIs(1)) << comes_back;
    EXPECT_EQ(statement->gaps[0].node, "n GPU-n-1");
  }
}

}  // namespace
}  // namespace gpuledger::app
