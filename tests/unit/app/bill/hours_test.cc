// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "unit/app/bill/fake_prometheus.h"

namespace gpuledger::app {
namespace {

using Labels = std::map<std::string, std::string>;

// Two hours in which pod web/db-0 has the GPU: for one hour that of team red, then for half an hour its successor of
// team blue.
class ReusedName : public ::testing::Test {
 protected:
  ReusedName() {
    for (int64_t at = -600; at <= 2 * kHour; at += 60) {
      FakeScrape& one = server_.scrape("n", at);
      one.nobody("idle", 100.0 * static_cast<double>(at + 600));
      const bool red = at <= kHour;
      one.add("gpu_ledger_pod_info",
              {{"namespace", "web"}, {"pod", "db-0"}, {"pod_uid", uid(red)}, {"label_team", red ? "red" : "blue"}}, 1);
    }
    query_.span = {std::chrono::sys_seconds(std::chrono::seconds(kBegin)),
                   std::chrono::sys_seconds(std::chrono::seconds(kBegin + 2 * kHour))};
    view_.by = {"label:team"};
    view_.prices.per_gpu_hour = {{"H200", 2}};
  }
  static std::string uid(bool red) { return red ? "uid-red" : "uid-blue"; }
  void hold(bool red, bool with_uid, int64_t from, int64_t to) {
    Labels labels = {{"node", "n"}, {"uuid", "GPU-n-0"}, {"namespace", "web"}, {"pod", "db-0"}};
    if (with_uid) labels["pod_uid"] = uid(red);
    server_.holdings.push_back({labels, from, to});
  }
  // Rounded to a tenth: a look is a minute.
  std::map<std::string, double> hours_by_team(bool with_uid) {
    server_.holdings.clear();
    hold(true, with_uid, 0, kHour);
    hold(false, with_uid, kHour + 60, kHour + 1800);
    const auto statement = make_statement(server_.ask(), query_, view_);
    EXPECT_TRUE(statement.ok()) << statement.error().message;
    std::map<std::string, double> hours;
    if (!statement.ok()) return hours;
    for (const BillLine& line : statement->lines) {
      if (line.allocated_gpu_hours) hours[line.name] = std::round(*line.allocated_gpu_hours * 10) / 10;
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
