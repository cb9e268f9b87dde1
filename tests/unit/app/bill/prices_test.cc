// SPDX-License-Identifier: Apache-2.0
#include "app/bill/prices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/app/bill/bill_fixture.h"

namespace gpuledger::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string list_error(const std::string& text) {
  const auto rows = parse_price_list(text);
  return rows.ok() ? "(no error)" : rows.error().message;
}

TEST(Prices, ALaterRowAndAClusterSayMore) {
  const auto rows = parse_price_list(
      "- {per_kwh: 0.2, pue: 1.3, per_gpu_hour: {NVIDIA H200: 2}}\n"
      "- {from: 2026-10-10, to: 2026-10-20T12:00:00Z, cluster: east, per_kwh: 0.5}\n"
      "- {cluster: west, pue: 1.1, per_gpu_hour: {NVIDIA L4: 0.5}}\n");
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  BillPrices prices;
  prices.per_gpu_hour = {{"NVIDIA L4", 1}};
  prices.rows = *rows;
  const auto day = [](unsigned number) {
    return std::chrono::sys_seconds(
        std::chrono::sys_days(std::chrono::year(2026) / std::chrono::October / std::chrono::day(number)));
  };
  EXPECT_EQ(prices.at("east", day(9)).per_kwh, 0.2);
  EXPECT_EQ(prices.at("east", day(10)).per_kwh, 0.5);
  EXPECT_EQ(prices.at("east", day(10)).pue, 1.3);
  EXPECT_EQ(prices.at("east", day(21)).per_kwh, 0.2);
  EXPECT_EQ(prices.at("", day(10)).per_kwh, 0.2);
  EXPECT_EQ(prices.at("west", day(10)).pue, 1.1);
  EXPECT_EQ(prices.at("west", day(10)).per_gpu_hour.at("NVIDIA L4"), 0.5);
  EXPECT_EQ(prices.at("east", day(10)).per_gpu_hour.at("NVIDIA L4"), 1) << "the constant one";
  EXPECT_THAT(prices.changes(day(1), day(31)), ElementsAre(day(10), day(20) + std::chrono::hours(12)));
  EXPECT_THAT(prices.changes(day(10), day(20)), ElementsAre()) << "at the begin it is so already";
  EXPECT_THAT(prices.words(), ElementsAre("1 EUR per GPU hour of NVIDIA L4",
                                          "0.2 EUR per kWh x PUE 1.3; 2 EUR per GPU hour of NVIDIA H200",
                                          "from 2026-10-10 00:00:00Z to 2026-10-20 12:00:00Z in east: 0.5 EUR per kWh",
                                          "in west: PUE 1.1; 0.5 EUR per GPU hour of NVIDIA L4"));
}

TEST(Prices, AListThatCannotBeIsRefused) {
  EXPECT_THAT(list_error(""), HasSubstr("must be a list of rows"));
  EXPECT_THAT(list_error("per_kwh: 1"), HasSubstr("must be a list of rows"));
  EXPECT_THAT(list_error("- 5"), HasSubstr("line 1: a row must be a map"));
  EXPECT_THAT(list_error("- {per_kwh: 1}\n- {price: 2}"), HasSubstr("line 2: \"price\" is not one of from, to"));
  EXPECT_THAT(list_error("- {per_kwh: -1}"), HasSubstr("per_kwh: "));
  EXPECT_THAT(list_error("- {per_kwh: [1]}"), HasSubstr("per_kwh must be one value"));
  EXPECT_THAT(list_error("- {per_kwh: 1, per_kwh: 2}"), HasSubstr("per_kwh is given twice"));
  EXPECT_THAT(list_error("- {pue: 0.5}"), HasSubstr("pue: "));
  EXPECT_THAT(list_error("- {from: soon}"), HasSubstr("from: "));
  EXPECT_THAT(list_error("- {from: 2026-02-01, to: 2026-01-01, pue: 2}"), HasSubstr("to is not after from"));
  EXPECT_THAT(list_error("- {from: 2026-02-01}"), HasSubstr("a row without a price"));
  EXPECT_THAT(list_error("- {per_gpu_hour: {a: 1, a: 2}}"), HasSubstr("a is given twice"));
  EXPECT_THAT(list_error("- {per_gpu_hour: 2}"), HasSubstr("must be a map of models"));
  EXPECT_THAT(list_error("- {per_kwh: 1}\n- {from: 2026-01-01, per_kwh: 2}"), HasSubstr("another row has a price"));
  EXPECT_THAT(list_error("- {to: 2026-01-01, per_kwh: 1}\n- {from: 2026-01-01, per_kwh: 2}"), "(no error)");
  EXPECT_THAT(list_error("- {per_kwh: 1}\n- {cluster: a, per_kwh: 2}\n- {pue: 2}"), "(no error)");
  EXPECT_THAT(list_error("- {per_kwh: 1"), HasSubstr("line "));
  EXPECT_THAT(list_error(std::string("- {per_kwh: 1}\0", 15)), HasSubstr("NUL bytes"));
}

class Priced : public Bill {
 protected:
  void use(const std::string& list) {
    auto rows = parse_price_list(list);
    ASSERT_TRUE(rows.ok()) << rows.error().message;
    view_.prices.rows = *std::move(rows);
    const std::chrono::sys_seconds begin{std::chrono::seconds(kBegin)};
    query_.price_changes = view_.prices.changes(begin, begin + std::chrono::hours(3));
  }
};

// One bill over a change of prices costs what the two before and after it do, wherever the change is in a step.
TEST_F(Priced, ABillOverAChangeCostsWhatItsPartsCost) {
  run("n", 0, 3 * kHour, 0, 1000);
  server_.holdings = {{{{"node", "n"}, {"uuid", "GPU-n-0"}, {"namespace", "team"}, {"pod", "a"}}, -600, 3 * kHour}};
  // kBegin is 2026-09-21 14:13:20Z.
  use("- {to: 2026-09-21T15:43:20Z, per_kwh: 0.2, pue: 2, per_gpu_hour: {H200: 1}}\n"
      "- {from: 2026-09-21T15:43:20Z, per_kwh: 0.4, pue: 1, per_gpu_hour: {H200: 3}}\n");
  ASSERT_EQ(query_.price_changes.size(), 1U);
  const Statement statement = good(3);
  const BillLine& team = line(statement, "team");
  EXPECT_NEAR(team.energy_cost, 1.5 * 2 * 0.2 + 1.5 * 0.4, 1e-9);
  EXPECT_NEAR(team.building_kwh, 1.5 * 2 + 1.5, 1e-9);
  EXPECT_NEAR(team.gpu_hour_cost, 1.5 * 1 + 1.5 * 3, 0.1);
  EXPECT_NEAR(team.allocated_gpu_hours.value_or(0), 3, 1e-9);
  view_.spread = Spread::kByUse;
  double cost = 0;
  for (const BillLine& one : good(3).lines) cost += one.energy_cost;
  double kept = 0;
  view_.spread = Spread::kKeep;
  for (const BillLine& one : good(3).lines) kept += one.energy_cost;
  EXPECT_NEAR(cost, kept, 1e-9) << "the same, whoever pays";
}

TEST_F(Priced, AnOwnerThatSharesOnlyAfterAChangeHasItsError) {
  for (const auto& [at, alone, shared, error] :
       {std::tuple(int64_t{0}, 0.0, 0.0, 0.0), std::tuple(int64_t{5000}, 50.0, 0.0, 0.0),
        std::tuple(2 * kHour, 50.0, 90.0, 7.0)}) {
    server_.scrape("n", at)
        .pod("team", "a", alone, shared)
        .pod_more("team", "a", "energy_standard_error_joules", error);
  }
  use("- {to: 2026-09-21T15:43:20Z, per_kwh: 0.2}\n- {from: 2026-09-21T15:43:20Z, per_kwh: 0.4}\n");
  EXPECT_DOUBLE_EQ(line(good(2), "team").standard_error_joules.value_or(0), 7);
}

// The last scrape of a node that has gone is before the change, and so is its price.
TEST_F(Priced, WhatANodeUsedBeforeItWentHasThePriceOfThen) {
  run("stays", 0, 3 * kHour, 0, 0);
  run("goes", 0, 3000, 0, 1200);  // 1 kWh
  server_.scrape("goes", 3015);
  use("- {to: 2026-09-21T15:43:20Z, per_kwh: 0.2}\n- {from: 2026-09-21T15:43:20Z, per_kwh: 0.4}\n");
  const auto statement = bill(3);
  ASSERT_TRUE(statement.ok()) << statement.error().message;
  EXPECT_NEAR(line(*statement, "team").energy_cost, 0.2, 1e-9);
}

TEST_F(Priced, WhatHasNoPriceIsNamed) {
  run("n", 0, 3 * kHour, 0, 1000);
  server_.holdings = {{{{"node", "n"}, {"uuid", "GPU-n-0"}, {"namespace", "team"}, {"pod", "a"}}, -600, 3 * kHour}};
  use("- {to: 2026-09-21T15:13:20Z, per_kwh: 0.2, per_gpu_hour: {H200: 1, Old: 9}}\n"
      "- {from: 2026-09-21T16:13:20Z, per_kwh: 0.2}\n");
  const Statement statement = good(3);
  EXPECT_NEAR(line(statement, "team").energy_cost, 0.4, 1e-9);
  EXPECT_THAT(statement.remarks, ElementsAre("--price-list: some hours of \"H200\" have no price and cost nothing here",
                                             "1 kWh are of a time or cluster without a price and cost nothing here"));
}

}  // namespace
}  // namespace gpuledger::app
