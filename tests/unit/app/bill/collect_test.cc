// SPDX-License-Identifier: Apache-2.0
#include "app/bill/collect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "unit/app/bill/bill_fixture.h"

namespace gpuledger::app {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_F(Bill, CountsWhatCountersRoseBy) {
  server_.scrape("n", 0).pod("team", "a", 1000, 500).nobody("idle", 100);
  server_.scrape("n", kHour).pod("team", "a", 1600, 900).nobody("idle", 150);
  server_.scrape("n", 2 * kHour).pod("team", "a", 1600, 900).nobody("idle", 350);
  server_.scrape("n", 3 * kHour).pod("team", "a", 2000, 1000).nobody("idle", 400);
  const Statement statement = good();
  EXPECT_TRUE(statement.complete());
  EXPECT_EQ(statement.meter_millijoules, 1'800'000);
  EXPECT_EQ(line(statement, "team").alone_millijoules, 1'000'000);
  EXPECT_EQ(line(statement, "team").shared_millijoules, 500'000);
  EXPECT_EQ(line(statement, "idle").own_millijoules(), 300'000);
  EXPECT_EQ(line(statement, "idle").kind, LineKind::kNobody);
  EXPECT_DOUBLE_EQ(statement.meter_gpu_hours, 3);
}

TEST_F(Bill, TwoHalvesAreTheWhole) {
  run("n", 0, 4 * kHour, 7);
  const int64_t whole = good(4).meter_millijoules;
  const int64_t first = good(2).meter_millijoules;
  query_.step = std::chrono::seconds(1800);
  EXPECT_EQ(good(4).meter_millijoules, whole) << "the step changes nothing";
  EXPECT_EQ(first * 2, whole);
  EXPECT_EQ(whole, 4 * kHour * 100 * 1000);
}

TEST_F(Bill, ANewPodCountsFromZero) {
  server_.scrape("n", 0).nobody("idle", 100);
  server_.scrape("n", kHour).pod("team", "new", 700, 77).nobody("idle", 100);
  const Statement statement = good(1);
  EXPECT_EQ(line(statement, "team").own_millijoules(), 777'000);
  EXPECT_TRUE(statement.complete());
}

TEST_F(Bill, WhatEndedPodsSpentBeforeTheyWereClosedIsTheirNamespaces) {
  server_.scrape("n", 0).pod("team", "a", 1000).pod("other", "b", 10).closed("team", 300);
  // a spent 40 more and was closed; short came and went in between with 5.
  server_.scrape("n", kHour).pod("other", "b", 10).closed("team", 300 + 1040 + 5);
  const Statement by_namespace = good(1);
  EXPECT_EQ(line(by_namespace, "team").own_millijoules(), 45'000);
  EXPECT_EQ(by_namespace.meter_millijoules, 45'000);
  view_.by = {"pod"};
  EXPECT_EQ(line(good(1), "ended pods of team").own_millijoules(), 45'000);
}

TEST_F(Bill, APodThatWasLeftOutAndComesBackIsNotBilledAgain) {
  server_.scrape("n", 0).pod("team", "a", 1000).closed("team", 5000);
  server_.scrape("n", kHour).pod("team", "a", 1000).pod("team", "large", 5100).closed("team", 0);
  server_.scrape("n", 2 * kHour).pod("team", "a", 1000).closed("team", 5150);
  server_.scrape("n", 3 * kHour).pod("team", "a", 1000).pod("team", "large", 5200).closed("team", 0);
  view_.by = {"pod"};
  const Statement statement = good(3);
  EXPECT_EQ(line(statement, "team/large").own_millijoules(), 200'000);
  EXPECT_EQ(statement.meter_millijoules, 200'000);
}

TEST_F(Bill, TheServerWasDownForTenMinutes) {
  run("n", 0, kHour - 600, 0);
  run("n", kHour + 600, 3 * kHour, 100.0 * (kHour + 600));
  const Statement statement = good();  // at one hour there is no sample of the last five minutes
  EXPECT_TRUE(statement.complete());
  EXPECT_EQ(statement.meter_millijoules, 3 * kHour * 100 * 1000);
}

TEST_F(Bill, ANodeThatAppearsCountsFromItsStart) {
  run("old", 0, 3 * kHour, 0);
  run("new", kHour + 615, 3 * kHour, 1500, 100, kHour + 600);
  const Statement statement = good();
  EXPECT_TRUE(statement.complete());
  view_.by = {"node"};
  const double last = (3 * kHour - kHour - 615) / 60 * 60;
  EXPECT_EQ(line(good(), "new").own_millijoules(), std::llround((1500 + 100 * last) * 1000));
}

TEST_F(Bill, ANodeThatAppearsWithAPastLacksItsHours) {
  run("old", 0, 3 * kHour, 0);
  run("new", kHour + 615, 3 * kHour, 1500, 100, kHour + 600);
  for (FakeScrape& one : server_.scrapes) one.opened = -1e6;  // its state file remembers
  const auto statement = bill();
  ASSERT_TRUE(statement.ok());
  EXPECT_FALSE(statement->complete());
  ASSERT_THAT(statement->gaps, SizeIs(1));
  EXPECT_EQ(statement->gaps[0].node, "new");
  EXPECT_EQ(statement->gaps[0].span.end.time_since_epoch().count(), kBegin + kHour + 615);
  EXPECT_LT(statement->meter_millijoules, 3LL * kHour * 200 * 1000) << "the past is not billed";
  EXPECT_EQ(statement->sum_millijoules(), statement->meter_millijoules);
}

TEST_F(Bill, ANodeThatWasThereTheDayBeforeLacksItsHours) {
  run("old", 0, 3 * kHour, 0);
  server_.scrape("new", -7200).pod("team", "a", 5);
  run("new", kHour + 615, 3 * kHour, 1500, 100, kHour + 600);
  const auto statement = bill();
  ASSERT_TRUE(statement.ok());
  ASSERT_THAT(statement->gaps, SizeIs(1));
  EXPECT_THAT(statement->gaps[0].why, HasSubstr("the day before"));
}

TEST_F(Bill, ANodeThatWasLostJustBeforeTheSpanIsNamed) {
  run("stays", 0, 3 * kHour, 0);
  server_.scrape("lost", -420).pod("team", "a", 5);
  server_.scrape("off", -25 * kHour).pod("team", "a", 5);
  const auto statement = bill();
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  ASSERT_THAT(statement->gaps, SizeIs(1));
  EXPECT_EQ(statement->gaps[0].node, "lost");
  EXPECT_EQ(statement->gaps[0].span.begin.time_since_epoch().count(), kBegin);
  EXPECT_EQ(statement->gaps[0].span.end.time_since_epoch().count(), kBegin + 3 * kHour);
  EXPECT_THAT(statement->gaps[0].why, HasSubstr("seen the day before, not in this span"));
}

TEST_F(Bill, ANodeWithAnotherAddressIsNotLost) {
  for (const auto& [node, at] : {std::pair("10.0.0.1", -kHour), {"10.0.0.2", int64_t{0}}, {"10.0.0.2", kHour}}) {
    FakeScrape& one = server_.scrape(node, at);
    one.card = "GPU-1";
    one.pod("team", "a", 5);
  }
  EXPECT_TRUE(good(1).complete());
}

TEST_F(Bill, ANodeThatVanishesCountsUpToItsLastScrape) {
  run("stays", 0, 3 * kHour, 0);
  run("goes", 0, kHour + 1200, 0);
  server_.scrape("goes", kHour + 1215);  // stale
  const auto statement = bill();
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  EXPECT_EQ(statement->meter_millijoules, (3 * kHour + kHour + 1200) * 100 * 1000);
  ASSERT_THAT(statement->gaps, SizeIs(1));
  EXPECT_EQ(statement->gaps[0].node, "goes");
  EXPECT_EQ(statement->gaps[0].span.begin.time_since_epoch().count(), kBegin + kHour + 1200);
  EXPECT_EQ(statement->gaps[0].span.end.time_since_epoch().count(), kBegin + 3 * kHour);
}

TEST_F(Bill, ANodeThatLivesBetweenTwoStepsIsNotLost) {
  run("stays", 0, 3 * kHour, 0);
  run("short", kHour + 600, kHour + 1800, 700, 100, kHour + 590);
  server_.scrape("short", kHour + 1815);
  view_.by = {"node"};
  const auto statement = bill();
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  EXPECT_EQ(line(*statement, "short").own_millijoules(), (700 + 120'000) * 1000);
  ASSERT_THAT(statement->gaps, SizeIs(1));
  EXPECT_EQ(statement->gaps[0].span.begin.time_since_epoch().count(), kBegin + kHour + 1800);
}

TEST_F(Bill, ANodeThatIsOnlySeenBetweenStepsIsNotLost) {
  run("flaps", 0, 600, 0);
  server_.scrape("flaps", 615);
  run("flaps", kHour + 600, kHour + 1200, 60'000);
  server_.scrape("flaps", kHour + 1215);
  const auto statement = bill();
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  EXPECT_EQ(statement->meter_millijoules, 120'000 * 1000);
}

TEST_F(Bill, ErrorsOfOneSeriesAddUpOverTimeThoseOfSeveralBySquares) {
  auto& first = server_.scrape("n", 0).pod("team", "a", 0, 100).pod("team", "b", 0, 100);
  first.pod_more("team", "a", "energy_standard_error_joules", 7)
      .pod_more("team", "b", "energy_standard_error_joules", 1);
  auto& last = server_.scrape("n", kHour).pod("team", "a", 0, 200).pod("team", "b", 0, 200);
  last.pod_more("team", "a", "energy_standard_error_joules", 10)
      .pod_more("team", "b", "energy_standard_error_joules", 5);
  EXPECT_DOUBLE_EQ(line(good(1), "team").standard_error_joules.value_or(0), 5);  // of 3 and 4
}

// What was charged too much before is taken back in the span, and is an error of that.
TEST_F(Bill, AnErrorThatFallsIsOneOfTheSpanToo) {
  for (const auto& [at, error] : {std::pair(int64_t{0}, 30.0), std::pair(kHour, 10.0)}) {
    server_.scrape("n", at)
        .pod("team", "a", 0, 100 + static_cast<double>(at))
        .pod_more("team", "a", "energy_standard_error_joules", error);
  }
  EXPECT_DOUBLE_EQ(line(good(1), "team").standard_error_joules.value_or(0), 20);
}

TEST_F(Bill, GpuHoursAndAllocations) {
  server_.scrape("n", 0).pod("team", "a", 0).pod_more("team", "a", "gpu_seconds_total", 100);
  server_.scrape("n", kHour).pod("team", "a", 9).pod_more("team", "a", "gpu_seconds_total", 1900);
  const std::map<std::string, std::string> lazy = {{"node", "n"},         {"instance", "n"}, {"uuid", "GPU-n-0"},
                                                   {"namespace", "free"}, {"pod", "lazy"},   {"container", "c"}};
  auto copy = lazy, other = lazy;
  copy["prometheus"] = "second";
  other["replica"] = "1";  // another time slice of the GPU
  server_.allocations = {{lazy, 60}, {copy, 60}, {other, 60}};
  server_.idle_allocations = {{lazy, 45}};
  view_.prices.per_gpu_hour = {{"H200", 2}};
  const Statement statement = good(1);
  EXPECT_DOUBLE_EQ(line(statement, "team").gpu_hours.value_or(0), 0.5);
  EXPECT_FALSE(line(statement, "team").allocated_gpu_hours);
  EXPECT_DOUBLE_EQ(line(statement, "team").gpu_hour_cost, 1);
  EXPECT_DOUBLE_EQ(line(statement, "free").allocated_gpu_hours.value_or(0), 2) << "a second server's copy counts once";
  EXPECT_DOUBLE_EQ(line(statement, "free").unused_gpu_hours.value_or(0), 0.75);
  EXPECT_DOUBLE_EQ(line(statement, "free").gpu_hour_cost, 4);
  EXPECT_EQ(line(statement, "free").own_millijoules(), 0);
  view_.by = {"node"};
  EXPECT_DOUBLE_EQ(line(good(1), "n").gpu_hour_cost, 5) << "the same cost, however it is grouped";
  view_.by = {"namespace"};
  auto own = lazy;
  own["namespace"] = "team";
  own["pod"] = "a";
  server_.allocations.emplace_back(own, 60);
  EXPECT_DOUBLE_EQ(line(good(1), "team").gpu_hour_cost, 2) << "allocated hours, not those of work as well";
  server_.allocations.pop_back();
  for (FakeScrape& one : server_.scrapes) one.replica = "east-a";  // a server's label, but not this one
  EXPECT_DOUBLE_EQ(line(good(1), "free").allocated_gpu_hours.value_or(0), 2);
  for (FakeScrape& one : server_.scrapes) one.replica = "1";  // now it is the server's
  EXPECT_DOUBLE_EQ(line(good(1), "free").allocated_gpu_hours.value_or(0), 1);
}

TEST_F(Bill, HoursOfAModelWithoutAPriceAreNamed) {
  for (const int64_t at : {int64_t{0}, kHour}) {
    server_.scrape("n", at).pod("team", "a", 5).pod("team", "a", 5, 0, "1");
  }
  server_.allocations = {{{{"node", "n"}, {"uuid", "GPU-n-1"}, {"namespace", "team"}, {"pod", "a"}}, 60}};
  view_.prices.per_gpu_hour = {{"H200", 2}};
  const Statement statement = good(1);
  EXPECT_DOUBLE_EQ(line(statement, "team").gpu_hour_cost, 0);
  ASSERT_THAT(statement.remarks, SizeIs(1));
  EXPECT_THAT(statement.remarks[0], HasSubstr("hours of \"L4\" have no price"));
}

TEST_F(Bill, Co2eFollowsItsSeries) {
  run("n", 0, 2 * kHour, 0, 1000);  // 1 kWh an hour
  query_.co2e_series = "co2e";
  server_.co2e = [](int64_t at) { return at <= kHour ? 100.0 : 300.0; };
  view_.prices.pue = 1.5;
  EXPECT_NEAR(line(good(2), "team").co2e_grams, 1.5 * 400, 1e-6);
  for (const double wrong : {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    server_.co2e = [=](int64_t) { return wrong; };
    EXPECT_THAT(error(), HasSubstr("is not a number of grams")) << wrong;
  }
}

// Where the sun shines at noon, the last value of six hours is not that of all six.
TEST_F(Bill, TheCo2eOfAStepIsItsMean) {
  run("n", 0, 12 * kHour, 0, 1000);
  query_.step = std::chrono::hours(6);
  query_.co2e_series = "co2e";
  server_.co2e = [](int64_t at) { return at % (6 * kHour) < 5 * kHour ? 400.0 : 40.0; };
  EXPECT_NEAR(line(good(12), "team").co2e_grams, 2 * (5 * 400 + 1 * 40), 50);
}

TEST_F(Bill, SeriesThatEndedWithoutAMarkAreNotCountedTwice) {
  run("n", 0, kHour, 0);
  server_.ghosts["n"] = kHour;  // at one hour the server still shows a series of the scrape before
  run("n", kHour + 60, 3 * kHour, 100.0 * (kHour + 60));
  EXPECT_EQ(good().meter_millijoules, 3 * kHour * 100 * 1000);
}

TEST_F(Bill, BooksThatDoNotBalanceAreNamed) {
  run("n", 0, 3 * kHour, 0);
  server_.meter_error = 0.01;
  EXPECT_THAT(error(), HasSubstr("node n at 2026-"));
  EXPECT_THAT(error(), HasSubstr("GPU-n-0 differ from its meter by 0.010 J"));
}

TEST_F(Bill, HugeCountersLoseNothingThatMatters) {
  // Beyond 2^53 microjoules, and more in sum than 64 bits of them hold.
  for (int node = 0; node < 4; ++node) {
    const std::string name = "n" + std::to_string(node);
    server_.scrape(name, 0).pod("team", "a", 1e12 + 0.125).nobody("idle", 3e11 + 0.25);
    server_.scrape(name, kHour).pod("team", "a", 4e12 + 0.125).nobody("idle", 9e11 + 0.75);
  }
  const Statement statement = good(1);
  EXPECT_EQ(line(statement, "team").own_millijoules(), 12'000'000'000'000'000);
  EXPECT_NEAR(static_cast<double>(line(statement, "idle").own_millijoules()), 2'400'000'000'002'000.0, 20);
}

TEST_F(Bill, TheNewestOfTwoCopiesOfANodeCounts) {
  for (const std::string replica : {"a", "b"}) {
    for (const int64_t at : {int64_t{0}, kHour}) {
      FakeScrape& one = server_.scrape("n", at - (replica == "b" ? 10 : 0));
      one.instance = replica;
      one.pod("team", "a", static_cast<double>(one.at) + 20);
    }
  }
  EXPECT_EQ(good(1).meter_millijoules, kHour * 1000);
}

TEST_F(Bill, OfTwoServersThatScrapeANodeTheOneThatHasItCounts) {
  for (int64_t at = 0; at <= 3 * kHour; at += 60) {
    for (const std::string replica : {"0", "1"}) {
      const bool down = replica == "0" ? at > kHour - 600 && at < kHour + 600 : at > 2 * kHour - 600;
      if (down) continue;
      FakeScrape& one = server_.scrape("n", at - (replica == "1" ? 7 : 0));
      one.replica = replica;
      one.pod("team", "a", 100.0 * static_cast<double>(one.at) + 5000);
    }
  }
  const Statement statement = good();
  EXPECT_TRUE(statement.complete());
  EXPECT_EQ(statement.meter_millijoules, 3 * kHour * 100 * 1000);
}

TEST_F(Bill, TwoNodesOfOneNameAreRefused) {
  run("n", 0, kHour, 0);
  FakeScrape& other = server_.scrape("n", 0);
  other.instance = "elsewhere";
  other.pod("team", "a", 5, 5, "7");
  EXPECT_THAT(error(), HasSubstr("say they are the node n"));
}

TEST_F(Bill, OneExporterUnderTwoNamesIsRefused) {
  for (const int64_t at : {int64_t{0}, kHour}) {
    for (const std::string name : {"127.0.0.1:9400", "gpu-7"}) {
      FakeScrape& one = server_.scrape(name, at);
      one.card = "GPU-1";
      one.pod("team", "a", 5);
    }
  }
  EXPECT_THAT(error(), HasSubstr("GPU-1 is there as node 127.0.0.1:9400 and as node gpu-7; choose one with --match"));
  server_.tells_books = false;
  EXPECT_THAT(error(), HasSubstr("GPU-1 is there as node 127.0.0.1:9400 and as node gpu-7"));
  server_.knows_starts = false;
  EXPECT_THAT(error(), HasSubstr("GPU-1 is there as node 127.0.0.1:9400 and as node gpu-7"));
  // Two simulated nodes have the same UUIDs.
  server_.tells_books = server_.knows_starts = true;
  for (FakeScrape& one : server_.scrapes) one.started = one.node == "gpu-7" ? -1000 : -1000.01;
  EXPECT_TRUE(bill(1).ok());
}

TEST_F(Bill, AGpuMayMoveFromNodeToNode) {
  for (int64_t at = 0; at <= 3 * kHour; at += 60) {
    if (at > kHour && at <= kHour + 600) continue;
    FakeScrape& one = server_.scrape(at <= kHour ? "n1" : "n2", at);
    one.card = "GPU-1";
    one.started = at <= kHour ? -1000 : kHour + 500;
    one.pod("team", "a", 100.0 * static_cast<double>(at <= kHour ? at : at - kHour - 500));
  }
  const auto statement = bill();
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  EXPECT_EQ(statement->meter_millijoules, (100 * kHour + 100 * (2 * kHour - 500)) * 1000);
}

TEST_F(Bill, ANodeOfAnotherClusterIsAnother) {
  for (const std::string cluster : {"east", "west"}) {
    for (const int64_t at : {int64_t{0}, kHour}) {
      FakeScrape& one = server_.scrape("n", at);
      one.cluster = cluster;
      one.instance = cluster;
      one.pod("team", "a", static_cast<double>(at) * (cluster == "east" ? 1 : 2));
    }
  }
  view_.by = {"cluster"};
  const Statement statement = good(1);
  EXPECT_EQ(line(statement, "east").own_millijoules(), kHour * 1000);
  EXPECT_EQ(line(statement, "west").own_millijoules(), 2 * kHour * 1000);
}

TEST_F(Bill, ANodeWithoutAClusterIsNotTheOneOfThatNameInOne) {
  for (int64_t at = 0; at <= kHour; at += 60) {
    FakeScrape& one = server_.scrape("n", at);
    one.cluster = one.instance = "b";
    one.pod("team", "a", 10.0 * static_cast<double>(at));
    if (at < 1860) continue;
    FakeScrape& late = server_.scrape("n", at);
    late.instance = "plain";
    late.started = 1800;
    late.pod("team", "a", static_cast<double>(at - 1800));
  }
  EXPECT_EQ(good(1).meter_millijoules, (10 * kHour + 1800) * 1000);
}

TEST_F(Bill, NothingThereIsAnError) {
  EXPECT_THAT(error(), HasSubstr("has no gpu_ledger_device_energy_joules_total between"));
}

}  // namespace
}  // namespace gpuledger::app
