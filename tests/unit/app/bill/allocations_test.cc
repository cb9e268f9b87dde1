// SPDX-License-Identifier: Apache-2.0
#include "app/bill/allocations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "unit/app/bill/bill_fixture.h"

namespace gpuledger::app {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class Allocated : public Bill {
 protected:
  static std::map<std::string, std::string> held(const std::string& pod) {
    return {{"node", "n"}, {"uuid", "GPU-n-0"}, {"namespace", pod}, {"pod", pod}, {"container", "c"}};
  }
  double hours(const Statement& statement, const std::string& pod) const {
    return line(statement, pod).allocated_gpu_hours.value_or(0);
  }
};

TEST_F(Allocated, AnOutageOfTheServerCostsNoHours) {
  run("n", -600, 2 * kHour + 1800, 0);
  run("n", 6 * kHour + 600, 9 * kHour, 100.0 * (6 * kHour + 1200));
  server_.holdings = {
      {held("keeps"), -600, 9 * kHour}, {held("ended"), -600, kHour}, {held("new"), 8 * kHour, 9 * kHour}};
  const Statement statement = good(9);
  EXPECT_TRUE(statement.complete());
  EXPECT_THAT(statement.remarks, SizeIs(0));
  EXPECT_NEAR(hours(statement, "keeps"), 9, 1e-9);
  EXPECT_NEAR(hours(statement, "ended"), 1, 1.0 / 60);
  EXPECT_NEAR(hours(statement, "new"), 1, 1.0 / 60);
}

// A job that holds GPUs pays for them, whether it works or not.
TEST_F(Allocated, AJobPaysForTheGpusThatSlurmGaveIt) {
  for (int64_t at = -600; at <= 4 * kHour; at += 60) {
    FakeScrape& one = server_.scrape("n", at);
    one.nobody("idle", 10.0 * static_cast<double>(at + 600));
    one.energy("gpu_ledger_slurm_job_energy_joules_total", {{"slurm_job_id", "7"}, {"step", "0"}}, "0",
               static_cast<double>(at + 600), false);
    one.add("gpu_ledger_slurm_job_gpu_seconds_total", {{"slurm_job_id", "7"}, {"step", "0"}, {"gpu", "0"}},
            0.5 * static_cast<double>(at + 600));
  }
  const auto by_slurm = [](const std::string& job, const std::string& account) {
    return std::map<std::string, std::string>{
        {"node", "n"}, {"uuid", "GPU-n-0"}, {"slurm_job_id", job}, {"account", account}, {"user_name", "ana"}};
  };
  server_.holdings = {{by_slurm("7", "physics"), -600, 4 * kHour}, {by_slurm("8", "film"), kHour, 3 * kHour}};
  server_.idle_allocations = {{by_slurm("8", "film"), 60}};  // an hour of each step
  view_.prices.per_gpu_hour = {{"H200", 2}};
  view_.by = {"slurm_account"};
  const Statement statement = good(4);
  EXPECT_NEAR(hours(statement, "physics"), 4, 1.0 / 60);
  EXPECT_NEAR(line(statement, "physics").gpu_hour_cost, 8, 0.05) << "allocated hours, not those of work as well";
  EXPECT_NEAR(hours(statement, "film"), 2, 1.0 / 60) << "it never worked";
  EXPECT_NEAR(line(statement, "film").unused_gpu_hours.value_or(0), 3, 1e-9) << "known from its second step on";
  EXPECT_NEAR(line(statement, "film").gpu_hour_cost, 4, 0.05);
  view_.by = {"user"};
  EXPECT_NEAR(hours(good(4), "ana"), 6, 1.0 / 30);
  view_.by = {"slurm_job"};
  EXPECT_NEAR(hours(good(4), "Slurm job 7"), 4, 1.0 / 60);
  EXPECT_EQ(line(good(4), "Slurm job 7").alone_millijoules, 4 * kHour * 1000) << "one line for both";
}

TEST_F(Allocated, WhoChangedWhileNobodyLookedIsNamed) {
  run("n", -600, 2 * kHour + 1800, 0);
  run("n", 6 * kHour + 600, 9 * kHour, 100.0 * (6 * kHour + 1200));
  server_.holdings = {{held("keeps"), -600, 9 * kHour}, {held("ended"), -600, 3 * kHour}};
  const auto statement = bill(9);
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  EXPECT_NEAR(hours(*statement, "keeps"), 9, 1e-9);
  EXPECT_NEAR(hours(*statement, "ended"), 2.5, 0.1) << "what was seen";
  ASSERT_THAT(statement->gaps, SizeIs(1));
  EXPECT_EQ(statement->gaps[0].node, "n");
  EXPECT_EQ(statement->gaps[0].why, "its allocated hours are not known");
  EXPECT_NEAR(static_cast<double>(statement->gaps[0].span.begin.time_since_epoch().count()), kBegin + 2.5 * kHour, 360);
}

TEST_F(Allocated, AShortHoleIsARemark) {
  run("n", -600, kHour + 1800, 0);
  server_.scrape("n", kHour + 1815);  // stale
  run("n", kHour + 2000, 9 * kHour, 100.0 * (kHour + 2600));
  server_.holdings = {{held("ended"), -600, kHour + 1900}};
  const Statement statement = good(9);
  EXPECT_TRUE(statement.complete());
  ASSERT_THAT(statement.remarks, SizeIs(1));
  EXPECT_THAT(statement.remarks[0], HasSubstr("allocated hours of n are not known from 2026-"));
}

TEST_F(Allocated, AnExporterMayAskTheKubeletAMinuteLater) {
  run("n", -600, kHour + 1800, 0);
  server_.scrape("n", kHour + 1815);
  run("n", kHour + 2400, 3 * kHour, 100.0 * (kHour + 3000));
  server_.holdings = {{held("keeps"), -600, kHour + 1800}, {held("keeps"), kHour + 2460, 3 * kHour}};
  const Statement statement = good(3);
  EXPECT_THAT(statement.remarks, SizeIs(0));
  EXPECT_NEAR(hours(statement, "keeps"), 3, 1e-9);
}

TEST_F(Allocated, AHoleThatEndsWithTheSpanIsNotForgotten) {
  // kBegin is 20 s after a minute: the last look is 20 s before the end.
  for (const int64_t back : {3 * kHour - 10, 3 * kHour - 60}) {
    server_.scrapes.clear();
    run("n", -600, kHour, 0);
    run("n", back, back, 100.0 * (3 * kHour + 600));
    server_.holdings = {{held("ended"), -600, 2 * kHour}};
    const auto statement = bill(3);
    ASSERT_TRUE(statement.ok()) << statement.error().message;
    ASSERT_THAT(statement->gaps, SizeIs(1));
    EXPECT_EQ(statement->gaps[0].why, "its allocated hours are not known");
  }
}

TEST_F(Allocated, ANewNodeHasNoHole) {
  run("n", kHour + 1830, 3 * kHour, 100, 100, kHour + 1690);  // first scraped a look after its start
  server_.holdings = {{held("new"), 0, 3 * kHour}};
  const Statement statement = good(3);
  EXPECT_TRUE(statement.complete());
  EXPECT_THAT(statement.remarks, SizeIs(0));
  EXPECT_NEAR(hours(statement, "new"), 1.5, 0.03);
}

TEST_F(Allocated, AHoleBeforeWhichNobodyHeldAnythingIsNamedToo) {
  run("n", -600, kHour + 1800, 0);
  run("n", 6 * kHour + 1800, 9 * kHour, 100.0 * (6 * kHour + 2400));
  server_.holdings = {{held("new"), 4 * kHour, 9 * kHour}};
  const auto statement = bill(9);
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  ASSERT_THAT(statement->gaps, SizeIs(1));
  EXPECT_EQ(statement->gaps[0].why, "its allocated hours are not known");
}

TEST_F(Allocated, OfTwoServersEachMayMissSomething) {
  for (int64_t at = -600; at <= 3 * kHour; at += 60) {
    for (const std::string replica : {"0", "1"}) {
      if (replica == "0" ? at > kHour + 600 && at < kHour + 1800 : at > kHour + 2000 && at < kHour + 3200) continue;
      FakeScrape& one = server_.scrape("n", at - (replica == "1" ? 7 : 0));
      one.replica = replica;
      one.pod("team", "a", 100.0 * static_cast<double>(one.at + 700));
    }
  }
  for (const std::string replica : {"0", "1"}) {
    auto labels = held("keeps");
    labels["replica"] = replica;
    server_.holdings.push_back({labels, -600, 3 * kHour});
  }
  EXPECT_NEAR(hours(good(3), "keeps"), 3, 1e-9);
}

TEST_F(Allocated, AServerThatCannotCountIsRefused) {
  run("n", -600, 3 * kHour, 0);
  server_.holdings = {{held("keeps"), -600, 3 * kHour}};
  query_.span = {std::chrono::sys_seconds(std::chrono::seconds(kBegin)),
                 std::chrono::sys_seconds(std::chrono::seconds(kBegin + 3 * kHour))};
  for (const double wrong : {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    const BillAsk ask = [&](const std::string& query, std::chrono::sys_seconds at) {
      auto answer = server_.ask()(query, at);
      if (query.starts_with("count_over_time(vector(1)")) answer->front().samples.back().value = wrong;
      return answer;
    };
    const auto statement = make_statement(ask, query_, view_);
    ASSERT_FALSE(statement.ok()) << wrong;
    EXPECT_THAT(statement.error().message, HasSubstr("looks of a subquery"));
  }
}

// A node that comes and goes within minutes is looked at by the minute.
TEST_F(Allocated, NobodyPaysForLongerThanTheGpuWasThere) {
  run("stays", 0, 2 * kHour, 0);
  run("n", 615, 1095, 1500, 100, 600);
  server_.scrape("n", 1110);
  server_.holdings = {{held("a"), 600, 1110}};
  const auto statement = bill(2);
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  EXPECT_NEAR(statement->meter_gpu_hours, 2 + 495.0 / 3600, 1e-9);
  EXPECT_NEAR(hours(*statement, "a"), 495.0 / 3600, 16.0 / 3600);
  EXPECT_LE(hours(*statement, "a"), 495.0 / 3600 + 1e-9);
}

TEST_F(Allocated, SlicesOfAGpuMayShareItsHour) {
  run("n", -600, 4 * kHour, 0);
  auto one = held("a"), two = held("a"), other = held("b"), instance = held("m");
  one["container"] = "first";
  two["container"] = "second";
  instance["mig_uuid"] = "MIG-1";
  server_.holdings = {
      {one, -600, 4 * kHour}, {two, kHour, 3 * kHour}, {other, 2 * kHour, 4 * kHour}, {instance, -600, 4 * kHour}};
  Statement statement = good(4);
  EXPECT_NEAR(hours(statement, "a"), 4 + 2, 1.0 / 30);
  EXPECT_NEAR(hours(statement, "b"), 2, 1.0 / 30);
  query_.share_allocated = true;
  statement = good(4);
  EXPECT_NEAR(hours(statement, "a"), 1 + 1 + 2.0 / 3 + 0.5, 1.0 / 30) << "alone, with its own second, with b's";
  EXPECT_NEAR(hours(statement, "b"), 1.0 / 3 + 0.5, 1.0 / 30);
  EXPECT_NEAR(hours(statement, "a") + hours(statement, "b"), 4, 1e-9) << "the GPU's hours, and no more";
  EXPECT_NEAR(hours(statement, "m"), 4, 1e-9) << "hardware of its own";
}

}  // namespace
}  // namespace gpuledger::app
