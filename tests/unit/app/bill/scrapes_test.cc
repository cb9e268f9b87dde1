// SPDX-License-Identifier: Apache-2.0
#include "app/bill/scrapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/app/bill/bill_fixture.h"

namespace gpuledger::app {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Arrived = FakeScrape::Arrived;

// Scrapes of which a server has a part, in another order, or in two copies that differ.
class Scrapes : public Bill {
 protected:
  FakeScrape& scrape_at(int64_t at) {
    for (FakeScrape& one : server_.scrapes) {
      if (one.at == at) return one;
    }
    ADD_FAILURE() << "no scrape at " << at;
    return server_.scrapes.front();
  }
};

TEST_F(Scrapes, OfOneThatIsThereInPartTheOneBeforeCounts) {
  for (const Arrived arrived : {Arrived::kMeters, Arrived::kOthers}) {
    server_.scrapes.clear();
    run("n", 0, 3 * kHour, 0);
    scrape_at(3 * kHour).arrived = arrived;
    const Statement statement = good();
    EXPECT_TRUE(statement.complete());
    EXPECT_EQ(statement.meter_millijoules, (3 * kHour - 60) * 100 * 1000);
    EXPECT_THAT(statement.remarks, ElementsAre(AllOf(StartsWith("n: 1 scrape was there only in part"),
                                                     EndsWith("; the one before is used"))));
  }
}

TEST_F(Scrapes, OneThatIsThereInPartIsPassedOverWhereAllAreRead) {
  run("n", 0, kHour + 1200, 1'000'000);
  run("n", kHour + 1260, 3 * kHour, 500, 100, kHour + 1250);  // it restarts
  const int64_t whole = good().meter_millijoules;
  scrape_at(kHour + 600).arrived = Arrived::kMeters;
  scrape_at(kHour + 1800).arrived = Arrived::kOthers;
  const Statement statement = good();
  EXPECT_EQ(statement.meter_millijoules, whole);
  EXPECT_TRUE(statement.complete());
  EXPECT_THAT(statement.remarks, ::testing::Contains(AllOf(StartsWith("n: 2 scrapes were there only in part"),
                                                           EndsWith("; the ones before are used"))));
}

TEST_F(Scrapes, TheLastOneOfANodeMayBeThereInPart) {
  run("stays", 0, 3 * kHour, 0);
  run("goes", 0, kHour, 0);
  FakeScrape& last = server_.scrape("goes", kHour + 400).pod("team", "a", 1e6).nobody("idle", 50);
  last.arrived = Arrived::kMeters;
  const auto statement = bill();
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  EXPECT_EQ(statement->meter_millijoules, (3 * kHour + kHour) * 100 * 1000);
}

TEST_F(Scrapes, SeriesThatAreAlwaysMissingAreAnError) {
  run("n", 0, 3 * kHour, 0);
  for (FakeScrape& one : server_.scrapes) {
    if (one.at > kHour) one.arrived = Arrived::kMeters;
  }
  EXPECT_THAT(error(), HasSubstr("node n at 2026-"));
  EXPECT_THAT(error(), HasSubstr("; are series of gpu-ledger dropped"));
  for (FakeScrape& one : server_.scrapes) one.arrived = Arrived::kOthers;
  server_.scrapes.front().arrived = Arrived::kAll;
  EXPECT_THAT(error(), HasSubstr("has no gpu_ledger_device_energy_joules_total of its scrape; is that one dropped?"));
}

TEST_F(Scrapes, AClockThatIsSetBackAfterABootBillsNothingTwice) {
  run("n", 0, 1200, 1000);
  run("n", 1260, kHour, 0, 100, 7200 + 1250);
  for (FakeScrape& one : server_.scrapes) {
    if (one.at >= 1260 && one.at < 1500) one.clock_ahead = 7200;
  }
  const Statement statement = good(1);
  EXPECT_EQ(statement.meter_millijoules, (1200 + (kHour - 1260)) * 100 * 1000 + 50 * 1000);
  EXPECT_NEAR(statement.meter_gpu_hours, 1, 0.02);
  EXPECT_THAT(statement.remarks, ElementsAre(StartsWith("n: restarted without --state-file at 2026-")));
}

TEST_F(Scrapes, OfTwoServersTheOneThatHasNotSeenALostGpuIsOlder) {
  for (int64_t at = 0; at <= kHour; at += 60) {
    for (const std::string replica : {"0", "1"}) {
      FakeScrape& one = server_.scrape("n", at - (replica == "1" ? 20 : 0));
      one.replica = replica;
      one.pod("team", "a", 100.0 * static_cast<double>(one.at) + 5000);
      if (one.at < kHour - 10) one.pod("team", "b", 10.0 * static_cast<double>(one.at) + 5000, 0, "1");
    }
  }
  const auto statement = bill(1);
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  EXPECT_EQ(statement->sum_millijoules(), statement->meter_millijoules);
  EXPECT_EQ(statement->meter_millijoules, (100 * kHour + 10 * (kHour - 20)) * 1000);
}

TEST_F(Scrapes, AnAnswerThatIsTooLargeIsAskedForInParts) {
  constexpr int kNamespaces = 500, kHours = 24 * 365;
  for (const int64_t at : {int64_t{0}, kHours * kHour}) {
    FakeScrape& one = server_.scrape("n", at);
    for (int i = 0; i < kNamespaces; ++i) {
      const std::string team = "team" + std::to_string(i), pod = "p" + std::to_string(i);
      one.pod(team, pod, i + static_cast<double>(at), i).pod_more(team, pod, "gpu_seconds_total", i);
      one.add("gpu_ledger_pod_info", {{"namespace", team}, {"pod", pod}, {"pod_uid", pod + "-uid"}}, 1);
    }
  }
  query_.step = std::chrono::hours(24);
  server_.most_series = 1200;
  const Statement statement = good(kHours);
  EXPECT_EQ(statement.lines.size(), static_cast<size_t>(kNamespaces));
  EXPECT_EQ(statement.meter_millijoules, int64_t{kNamespaces} * kHours * kHour * 1000);
  EXPECT_LT(server_.queries.size(), 10U * kHours / 24) << "once it is known, nobody asks for too much again";
  server_.most_series = 900;  // the energies of pods have 1000
  const auto statement_without = bill(kHours);
  ASSERT_FALSE(statement_without.ok());
  EXPECT_EQ(statement_without.error().message, "too many series");
}

}  // namespace
}  // namespace gpuledger::app
