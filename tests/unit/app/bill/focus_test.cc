// SPDX-License-Identifier: Apache-2.0
#include "app/bill/focus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "app/bill/csv_cell.h"
#include "unit/app/bill/sample_statement.h"

namespace gpuledger::app {
namespace {

using Row = std::map<std::string, std::string>;

struct Table {
  std::vector<std::string> columns;
  std::vector<Row> rows;
};

// A parser of RFC 4180, strict: lines end with CR LF, and no cell is longer than the header.
Table parse(const std::string& text) {
  std::vector<std::vector<std::string>> lines(1, {""});
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        lines.back().back() += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        lines.back().back() += text[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      EXPECT_EQ(lines.back().back(), "") << "a quote inside a bare cell";
      quoted = true;
    } else if (c == ',') {
      lines.back().emplace_back();
    } else if (c == '\r') {
      EXPECT_EQ(text.at(++i), '\n');
      lines.push_back({""});
    } else {
      EXPECT_NE(c, '\n') << "a line must end with CR LF";
      lines.back().back() += c;
    }
  }
  EXPECT_FALSE(quoted);
  EXPECT_EQ(lines.back(), std::vector<std::string>{""}) << "the last line must end with CR LF";
  lines.pop_back();
  Table table{lines.front(), {}};
  for (size_t i = 1; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].size(), table.columns.size()) << "line " << i;
    Row row;
    for (size_t j = 0; j < table.columns.size(); ++j) row[table.columns[j]] = lines[i].at(j);
    table.rows.push_back(row);
  }
  return table;
}

// Mandatory in Cost and Usage, and whether it may be null.
const std::map<std::string, bool> kMandatory = {
    {"BilledCost", false},      {"BillingAccountId", false},  {"BillingAccountName", true},
    {"BillingCurrency", false}, {"BillingPeriodEnd", false},  {"BillingPeriodStart", false},
    {"ChargeCategory", false},  {"ChargeClass", true},        {"ChargeDescription", true},
    {"ChargePeriodEnd", false}, {"ChargePeriodStart", false}, {"ContractedCost", false},
    {"EffectiveCost", false},   {"InvoiceIssuerName", false}, {"ListCost", false},
    {"PricingQuantity", true},  {"PricingUnit", true},        {"ServiceCategory", false},
    {"ServiceName", false},
};
const std::set<std::string> kOf1_2 = {"ProviderName", "PublisherName"};
const std::set<std::string> kOf1_3 = {"HostProviderName", "ServiceProviderName"};
// The values that the specification allows; the empty one is null.
const std::map<std::string, std::set<std::string>> kAllowed = {
    {"ChargeCategory", {"Usage", "Purchase", "Tax", "Credit", "Adjustment"}},
    {"ChargeClass", {"", "Correction"}},
    {"ChargeFrequency", {"One-Time", "Recurring", "Usage-Based"}},
    {"PricingCategory", {"Standard", "Dynamic", "Committed", "Other"}},
    {"ServiceCategory",
     {"AI and Machine Learning", "Analytics", "Business Applications", "Compute", "Databases", "Developer Tools",
      "Multicloud", "Identity", "Integration", "Internet of Things", "Management and Governance", "Media", "Migration",
      "Mobile", "Networking", "Security", "Storage", "Web", "Other"}},
};

void expect_valid(const Table& table, const std::set<std::string>& providers) {
  const std::set<std::string> columns(table.columns.begin(), table.columns.end());
  EXPECT_EQ(columns.size(), table.columns.size()) << "a column twice";
  EXPECT_FALSE(table.rows.empty());
  for (const auto& [name, nullable] : kMandatory) {
    EXPECT_TRUE(columns.contains(name)) << name;
    for (const Row& row : table.rows) EXPECT_TRUE(nullable || !row.at(name).empty()) << name;
  }
  for (const std::string& name : providers)
    for (const Row& row : table.rows) EXPECT_FALSE(row.at(name).empty()) << name;
  for (const auto& [name, allowed] : kAllowed)
    for (const Row& row : table.rows) EXPECT_TRUE(allowed.contains(row.at(name))) << name << " " << row.at(name);
  bool own = false;
  for (const std::string& name : table.columns) {
    EXPECT_TRUE(!own || name.starts_with("x_")) << name << " after an own column";
    own = own || name.starts_with("x_");
  }
  for (const Row& row : table.rows) {
    for (const char* name : {"BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd"})
      EXPECT_THAT(row.at(name), testing::MatchesRegex("....-..-..T..:..:..Z"));
    for (const char* name : {"BilledCost", "ConsumedQuantity", "EffectiveCost", "ListCost", "ContractedCost"})
      EXPECT_EQ(row.at(name).find_first_not_of("-0123456789."), std::string::npos) << row.at(name);
    EXPECT_TRUE(nlohmann::json::parse(row.at("Tags")).is_object());
    EXPECT_EQ(row.at("BillingCurrency").size(), 3u);
    EXPECT_EQ(row.at("ConsumedQuantity").empty(), row.at("ConsumedUnit").empty());
  }
}

double sum(const Table& table, const std::string& column, const std::string& service = "") {
  double all = 0;
  for (const Row& row : table.rows)
    if ((service.empty() || row.at("ServiceName") == service) && !row.at(column).empty())
      all += std::stod(row.at(column));
  return all;
}

void expect_sums(const Statement& statement, const Table& table) {
  double cost = 0;
  for (const BillLine& line : statement.lines) cost += line.cost();
  EXPECT_NEAR(sum(table, "BilledCost"), cost, 1e-9);
  EXPECT_EQ(std::llround(sum(table, "ConsumedQuantity", "GPU energy") * 3.6e9), statement.meter_millijoules);
  EXPECT_EQ(std::llround((sum(table, "x_EnergyAloneKwh") + sum(table, "x_EnergySharedKwh")) * 3.6e9),
            statement.meter_millijoules);
  for (const Row& row : table.rows)
    if (!row.at("ListUnitPrice").empty() && row.at("x_LineKind") != "nobody") {
      EXPECT_NEAR(std::stod(row.at("PricingQuantity")) * std::stod(row.at("ListUnitPrice")),
                  std::stod(row.at("BilledCost")), 1e-6)
          << row.at("ChargeDescription");
    }
}

TEST(BillFocus, HasTheMandatoryColumnsAndValues) {
  const Table newer = parse(bill_focus(sample_statement()));
  std::set<std::string> all = kOf1_2;
  all.insert(kOf1_3.begin(), kOf1_3.end());
  expect_valid(newer, all);
  const Table older = parse(bill_focus(sample_statement(), FocusVersion::k1_2));
  expect_valid(older, kOf1_2);
  EXPECT_EQ(older.columns.size() + 2, newer.columns.size());
  for (const std::string& name : older.columns) EXPECT_FALSE(kOf1_3.contains(name)) << name;
}

TEST(BillFocus, AddsUpToTheCostAndTheMeter) {
  expect_sums(sample_statement(), parse(bill_focus(sample_statement())));
  const Statement spread = spread_statement();
  expect_sums(spread, parse(bill_focus(spread)));
  Statement large = sample_statement();
  for (int i = 0; i < 500; ++i)
    large.lines.push_back(bill_line(LineKind::kOwner, "n", int64_t{1'000'000'007} * i + 1, 7));
  large.meter_millijoules = large.sum_millijoules();
  price(large);
  expect_sums(large, parse(bill_focus(large)));
}

TEST(BillFocus, SaysWhoAndWhat) {
  const Table table = parse(bill_focus(sample_statement()));
  const Row& energy = table.rows.at(0);
  EXPECT_EQ(energy.at("SubAccountId"), "vision");
  EXPECT_EQ(energy.at("ServiceName"), "GPU energy");
  EXPECT_EQ(energy.at("BillingAccountId"), "Example site");
  EXPECT_EQ(energy.at("ChargePeriodStart"), "2026-10-01T00:00:00Z");
  EXPECT_EQ(energy.at("ChargePeriodEnd"), "2026-11-01T00:00:00Z");
  EXPECT_EQ(energy.at("ConsumedUnit"), "kWh");
  EXPECT_EQ(energy.at("Tags"), R"({"cluster":"east","label_team":"vision","namespace":"research"})");
  EXPECT_EQ(energy.at("x_Pue"), "1.3");
  EXPECT_EQ(energy.at("x_GpuHours"), "2900.25");
  EXPECT_EQ(energy.at("x_Complete"), "true");
  const Row& hours = table.rows.at(1);
  EXPECT_EQ(hours.at("ServiceName"), "GPU hours");
  EXPECT_EQ(hours.at("ConsumedQuantity"), "3720");
  EXPECT_EQ(hours.at("BilledCost"), "5580");
  EXPECT_EQ(hours.at("x_GpuHours"), "") << "counted on the line of the energy";
  const Row& idle = table.rows.at(table.rows.size() - 2);
  EXPECT_EQ(idle.at("SubAccountId"), "");
  EXPECT_EQ(idle.at("x_LineKind"), "nobody");
  EXPECT_EQ(idle.at("ChargeDescription"), "GPU energy: nobody: idle");
}

TEST(BillFocus, EveryModelWithAPriceHasALineOfItsOwn) {
  Statement statement = sample_statement();
  statement.prices.per_gpu_hour = {{"NVIDIA H100", 1.5}, {"NVIDIA L4", 0.25}};
  statement.lines[0].held_gpu_hours = {{"NVIDIA H100", 100}, {"NVIDIA L4", 8}, {"NVIDIA T4", 40}};
  statement.lines[0].gpu_hour_cost = 100 * 1.5 + 8 * 0.25;
  statement.lines[1].held_gpu_hours = {{"NVIDIA T4", 40}};  // without a price
  statement.lines[1].gpu_hour_cost = 0;
  statement.lines[2].held_gpu_hours.clear();  // its work is in the allocated hours of another line
  statement.lines[2].gpu_hour_cost = 0;
  const Table table = parse(bill_focus(statement));
  expect_sums(statement, table);
  std::vector<std::vector<std::string>> hours;
  for (const Row& row : table.rows) {
    if (row.at("ServiceName") != "GPU hours") continue;
    hours.push_back({row.at("SubAccountId"), row.at("x_GpuModel"), row.at("PricingQuantity"), row.at("ListUnitPrice"),
                     row.at("ListCost")});
    EXPECT_EQ(row.at("ChargeDescription"), "GPU hours of " + row.at("x_GpuModel") + ": vision");
  }
  EXPECT_THAT(hours, testing::ElementsAre(testing::ElementsAre("vision", "NVIDIA H100", "100", "1.5", "150"),
                                          testing::ElementsAre("vision", "NVIDIA L4", "8", "0.25", "2")));
}

TEST(BillFocus, AbsentIsNull) {
  Statement statement = sample_statement();
  statement.has_co2e = false;
  statement.prices.per_gpu_hour.clear();
  statement.gaps.push_back({"node1", {at(2026, 10, 2), at(2026, 10, 3)}, "no reading"});
  const Table table = parse(bill_focus(statement));
  EXPECT_EQ(table.rows.size(), statement.lines.size());
  const Row& idle = table.rows.at(4);
  for (const char* name : {"x_Co2eGrams", "x_GpuHours", "x_AllocatedGpuHours", "x_EnergyStandardErrorKwh"})
    EXPECT_EQ(idle.at(name), "") << name;
  EXPECT_EQ(idle.at("x_Complete"), "false");
}

// The page's CSV has the same cells: tests/e2e/page_view_test.py.
TEST(BillCsv, CellsAreThoseOfTheTable) {
  const auto cells = nlohmann::json::parse(std::ifstream(GPU_LEDGER_SOURCE_DIR "/tests/data/csv_cells.json"));
  ASSERT_GT(cells.size(), 20u);
  for (const auto& row : cells) EXPECT_EQ(csv_text(row.at(0).get<std::string>()), row.at(1).get<std::string>()) << row;
}

TEST(BillFocus, ANameIsNeverAFormulaNorBreaksALine) {
  Statement statement = sample_statement();
  for (const char* name : {"=cmd|' /C calc'!A0", "+1", "-1+2", "@SUM(A1)", "  =1", "\t=1", "\uff1d1", "\u202e=1"}) {
    statement.lines[0].name = name;
    const std::string cell = parse(bill_focus(statement)).rows.at(0).at("SubAccountId");
    EXPECT_EQ(cell.front(), '\'') << name << " gave " << cell;
  }
  statement.lines[0].name = "a, \"b\"\r\nc";
  statement.lines[0].properties["namespace"] = "x\n\"y\"";
  const Row row = parse(bill_focus(statement)).rows.at(0);
  EXPECT_EQ(row.at("SubAccountName"), "a, \"b\"c");
  EXPECT_EQ(nlohmann::json::parse(row.at("Tags")).at("namespace"), "x\n\"y\"") << "the tags keep the name as it is";
}

}  // namespace
}  // namespace gpuledger::app
