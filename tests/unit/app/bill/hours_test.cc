// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/app/bill/fake_prometheus.h"

namespace gpuledger::app {
namespace {

using Labels = std::map<std::string, std::string>;

// Two hours in which pod web/db-0 has the GPU: first that of team red, then its successor of team blue.
class ReusedName : public ::testing::Test {
 protected:
  ReusedName() {
    for (const int hour : {0, 1, 2}) {
      FakeScrape& one = server_.scrape("n", hour * kHour);
      one.nobody("idle", 100.0 * hour);
      const std::string uid = hour < 2 ? "uid-red" : "uid-blue";
      one.add("gpu_ledger_pod_info",
              {{"namespace", "web"}, {"pod", "db-0"}, {"pod_uid", uid}, {"label_team", hour < 2 ? "red" : "blue"}}, 1);
    }
    query_.span = {std::chrono::sys_seconds(std::chrono::seconds(kBegin)),
                   std::chrono::sys_seconds(std::chrono::seconds(kBegin + 2 * kHour))};
    view_.by = {"label:team"};
    view_.prices.per_gpu_hour = {{"H200", 2}};
  }
  // The pod has the GPU for all of the first hour and half of the second.
  std::map<std::string, double> hours_by_team(bool with_uid) {
    const BillAsk rest = server_.ask();
    const BillAsk ask = [&](const std::string& query, std::chrono::sys_seconds at) -> Result<std::vector<BillSeries>> {
      if (!query.starts_with("sum_over_time")) return rest(query, at);
      const bool first = at.time_since_epoch().count() == kBegin + kHour;
      BillSeries series;
      series.labels = {{"node", "n"}, {"uuid", "GPU-n-0"}, {"namespace", "web"}, {"pod", "db-0"}};
      if (with_uid) series.labels.emplace_back("pod_uid", first ? "uid-red" : "uid-blue");
      series.samples = {{at.time_since_epoch().count() * 1000, first ? 60.0 : 30.0}};
      return std::vector<BillSeries>{series};
    };
    const auto statement = make_statement(ask, query_, view_);
    EXPECT_TRUE(statement.ok()) << statement.error().message;
    std::map<std::string, double> hours;
    if (!statement.ok()) return hours;
    for (const BillLine& line : statement->lines) {
      if (line.allocated_gpu_hours) hours[line.name] = *line.allocated_gpu_hours;
    }
    return hours;
  }
  FakePrometheus server_;
  BillQuery query_;
  BillView view_;
};

TEST_F(ReusedName, HoursBelongToThePodThatHadTheGpu) {
  EXPECT_EQ(hours_by_team(true), (std::map<std::string, double>{{"red", 1}, {"blue", 0.5}}));
  view_.by = {"pod"};
  EXPECT_EQ(hours_by_team(true), (std::map<std::string, double>{{"web/db-0", 1.5}})) << "a line is a name";
}

TEST_F(ReusedName, WithoutAUidTheLabelsOfTheTimeCount) {
  EXPECT_EQ(hours_by_team(false), (std::map<std::string, double>{{"red", 1}, {"blue", 0.5}}));
}

TEST(NothingFound, SaysThatMatchMustFitTheMeters) {
  FakePrometheus server;
  BillQuery query;
  query.span = {std::chrono::sys_seconds(std::chrono::seconds(kBegin)),
                std::chrono::sys_seconds(std::chrono::seconds(kBegin + kHour))};
  EXPECT_THAT(make_statement(server.ask(), query, {}).error().message, testing::EndsWith("does it scrape gpu-ledger?"));
  query.match = "namespace=\"ml\"";
  EXPECT_THAT(make_statement(server.ask(), query, {}).error().message,
              testing::EndsWith(" with namespace=\"ml\"; --match must fit the meters too, which have no namespace or "
                                "user; --by splits a bill by team"));
}

// An hour of work on MIG, which has no GPU time.
TEST(UnknownHours, AreNamedWhereTheyWouldCost) {
  FakePrometheus server;
  for (const int hour : {0, 1}) {
    FakeScrape& one = server.scrape("n", hour * kHour);
    one.energy("gpu_ledger_container_energy_joules_total", {{"runtime", "docker"}, {"container", "triton"}}, "0",
               100.0 * hour, false);
    one.energy("gpu_ledger_unknown_owner_energy_joules_total", {}, "0", 5.0 * hour, false);
    one.pod("team", "held", 100.0 * hour).nobody("idle", 100.0 * hour);
  }
  server.allocations = {{{{"node", "n"}, {"uuid", "GPU-n-0"}, {"namespace", "team"}, {"pod", "held"}}, 60}};
  BillQuery query;
  query.span = {std::chrono::sys_seconds(std::chrono::seconds(kBegin)),
                std::chrono::sys_seconds(std::chrono::seconds(kBegin + kHour))};
  BillView view;
  view.prices.per_gpu_hour = {{"H200", 2}};
  auto statement = make_statement(server.ask(), query, view);
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  EXPECT_THAT(
      statement->remarks,
      testing::ElementsAre("--price-per-gpu-hour: hours of container: docker triton on \"H200\" are not known (no GPU "
                           "time, as on MIG) and cost nothing here"));
  view.prices = {};
  EXPECT_TRUE(make_statement(server.ask(), query, view)->remarks.empty()) << "without a price nobody misses them";
}

}  // namespace
}  // namespace gpuledger::app
