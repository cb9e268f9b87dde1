// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/app/bill/bill_fixture.h"

namespace gpuledger::app {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// What an exporter keeps or forgets when it starts again.
class Restarts : public Bill {};

TEST_F(Restarts, ARestartWithItsStateGoesOn) {
  run("n", 0, kHour, 0);
  server_.scrape("n", kHour + 60);  // the scrape fails
  run("n", kHour + 1200, 3 * kHour, 100.0 * (kHour + 1200), 100, kHour + 1000);
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
  const Statement statement = good(4);
  EXPECT_TRUE(statement.complete());
  EXPECT_THAT(statement.remarks, SizeIs(0));
  EXPECT_EQ(line(statement, "team").own_millijoules(), (100 * kHour + 30) * 1000);
}

TEST_F(Restarts, AnExporterWithoutAStateFileBeginsAgainAlthoughAllIsHigher) {
  const int64_t before = 100 * kHour * 1000, after = 400 * (3 * kHour - 60) * 1000, past = 1'000'000;
  for (const bool keeps_state : {false, true}) {
    server_.scrapes.clear();
    run("n", 0, kHour, 1000);
    for (int64_t at = 3 * kHour; at <= 4 * kHour; at += 60) {
      FakeScrape& one = server_.scrape("n", at);
      one.started = kHour + 60;
      one.pod("team", "a", 400.0 * static_cast<double>(at - kHour - 60)).nobody("idle", 50);
      one.add("gpu_ledger_source_up", {{"source", "nvml"}}, 1);
      if (keeps_state) one.add("gpu_ledger_source_up", {{"source", "state-file"}}, 1);
    }
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
  // The same, but the server has no start times: the bill must not look complete.
  server_.knows_starts = false;
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

}  // namespace
}  // namespace gpuledger::app
