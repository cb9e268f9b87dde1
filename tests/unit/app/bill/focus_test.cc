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
// The columns that not every version has; those of providers must not be null.
const std::set<std::string> kOldProviders = {"ProviderName", "PublisherName"};
const std::set<std::string> kNewProviders = {"HostProviderName", "ServiceProviderName"};
const std::set<std::string> kAllocated = {"AllocatedMethodDetails", "AllocatedMethodId", "AllocatedResourceId",
                                          "AllocatedResourceName", "AllocatedTags"};
struct Version {
  FocusVersion version;
  std::vector<std::set<std::string>> with, without;
};
const Version kVersions[] = {{FocusVersion::k1_2, {kOldProviders}, {kNewProviders, kAllocated}},
                             {FocusVersion::k1_3, {kOldProviders, kNewProviders, kAllocated}, {}},
                             {FocusVersion::k1_4, {kNewProviders, kAllocated}, {kOldProviders}}};
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
    // Of the service category Compute.
    {"ServiceSubcategory",
     {"Containers", "End User Computing", "Quantum Compute", "Serverless Compute", "Virtual Machines",
      "Other (Compute)"}},
};

void expect_valid(const Table& table) {
  const std::set<std::string> columns(table.columns.begin(), table.columns.end());
  EXPECT_EQ(columns.size(), table.columns.size()) << "a column twice";
  EXPECT_FALSE(table.rows.empty());
  for (const auto& [name, nullable] : kMandatory) {
    EXPECT_TRUE(columns.contains(name)) << name;
    for (const Row& row : table.rows) EXPECT_TRUE(nullable || !row.at(name).empty()) << name;
  }
  for (const auto* providers : {&kOldProviders, &kNewProviders})
    for (const std::string& name : *providers)
      for (const Row& row : table.rows) EXPECT_TRUE(!columns.contains(name) || !row.at(name).empty()) << name;
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

TEST(BillFocus, EachVersionHasItsColumnsAndTheSameRows) {
  const Table newest = parse(bill_focus(sample_statement(), FocusVersion::k1_4));
  for (const Version& one : kVersions) {
    const Table table = parse(bill_focus(sample_statement(), one.version));
    expect_valid(table);
    const std::set<std::string> columns(table.columns.begin(), table.columns.end());
    for (const auto& group : one.with)
      for (const std::string& name : group) EXPECT_TRUE(columns.contains(name)) << name;
    for (const auto& group : one.without)
      for (const std::string& name : group) EXPECT_FALSE(columns.contains(name)) << name;
    ASSERT_EQ(table.rows.size(), newest.rows.size());
    for (size_t i = 0; i < table.rows.size(); ++i)
      for (const auto& [name, cell] : table.rows[i])
        EXPECT_EQ(cell, kOldProviders.contains(name)    ? "Example site"
                        : newest.rows[i].contains(name) ? newest.rows[i].at(name)
                                                        : "no such column")
            << name;
  }
  EXPECT_EQ(bill_focus(sample_statement()), bill_focus(sample_statement(), FocusVersion::k1_3)) << "if not asked for";
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

// The energy of all GPUs is the charge that is split: ratios over all lines are 1, quantities are the meter's.
void expect_split(const Statement& statement, const std::string& method) {
  double ratio = 0;
  double kwh = 0;
  const Table table = parse(bill_focus(statement));
  for (const Row& row : table.rows) {
    if (row.at("ServiceName") != "GPU energy") {
      for (const std::string& name : kAllocated) EXPECT_EQ(row.at(name), "") << name;
      continue;
    }
    EXPECT_EQ(row.at("AllocatedMethodId"), method);
    const bool is_known = row.at("x_LineKind") == "owner" || row.at("x_LineKind") == "no_group";
    EXPECT_EQ(row.at("AllocatedResourceId").empty(), !is_known);
    EXPECT_EQ(row.at("AllocatedResourceId"), row.at("AllocatedResourceName"));
    const auto details = nlohmann::json::parse(row.at("AllocatedMethodDetails"));
    for (const auto& element : details.at("Elements")) {
      ratio += element.at("AllocatedRatio").get<double>();
      kwh += element.at("UsageQuantity").get<double>();
      EXPECT_EQ(element.at("UsageUnit"), "kWh");
    }
  }
  EXPECT_NEAR(ratio, 1, 1e-9);
  EXPECT_EQ(std::llround(kwh * 3.6e9), statement.meter_millijoules);
}

TEST(BillFocus, AllocatedColumnsSayHowTheEnergyWasSplit) {
  expect_split(sample_statement(), "gpu-ledger-energy");
  Statement spread = spread_statement();
  expect_split(spread, "gpu-ledger-energy-spread-by-use");
  spread.spread = Spread::kByAllocation;
  expect_split(spread, "gpu-ledger-energy-spread-by-allocation");

  Statement simple = sample_statement();
  simple.lines = {bill_line(LineKind::kOwner, "vision", 3'600'000'000, 7'200'000'000),
                  bill_line(LineKind::kNobody, "idle", 3'600'000'000, 0)};
  simple.lines[0].spread_millijoules = 3'600'000'000;
  simple.lines[1].spread_millijoules = -3'600'000'000;
  const Table table = parse(bill_focus(simple));
  EXPECT_EQ(table.rows.at(0).at("AllocatedResourceId"), "vision");
  EXPECT_EQ(table.rows.at(0).at("AllocatedMethodDetails"),
            R"({"Elements":[{"AllocatedRatio":0.25,"UsageUnit":"kWh","UsageQuantity":1,"x_Basis":"measured"},)"
            R"({"AllocatedRatio":0.5,"UsageUnit":"kWh","UsageQuantity":2,"x_Basis":"estimated",)"
            R"("x_StandardErrorKwh":0.08},)"
            R"({"AllocatedRatio":0.25,"UsageUnit":"kWh","UsageQuantity":1,"x_Basis":"unattributed_spread"}]})");
  EXPECT_EQ(table.rows.at(1).at("AllocatedMethodDetails"),
            R"({"Elements":[{"AllocatedRatio":0.25,"UsageUnit":"kWh","UsageQuantity":1,"x_Basis":"measured"},)"
            R"({"AllocatedRatio":-0.25,"UsageUnit":"kWh","UsageQuantity":-1,"x_Basis":"unattributed_spread"}]})");
  simple.lines = {bill_line(LineKind::kOwner, "vision", 0, 0)};
  for (const std::string& name : kAllocated)
    EXPECT_EQ(parse(bill_focus(simple)).rows.at(0).at(name), "") << "there is nothing to split";
}

TEST(BillFocus, ASkuStaysWhenItsPriceChanges) {
  Statement statement = sample_statement();
  const Table before = parse(bill_focus(statement));
  statement.prices = {"USD", 0.5, {{"NVIDIA H100", 2}}, 1.3, 380.0};
  price(statement);
  const Table after = parse(bill_focus(statement));
  for (const char* name : {"SkuId", "SkuPriceId", "SkuMeter", "SkuPriceDetails"})
    for (size_t i = 0; i < before.rows.size(); ++i) EXPECT_EQ(before.rows[i].at(name), after.rows.at(i).at(name));
  const Row& energy = before.rows.at(0);
  EXPECT_EQ(energy.at("SkuId"), "gpu-energy");
  EXPECT_EQ(energy.at("SkuPriceId"), "gpu-energy");
  EXPECT_EQ(energy.at("SkuMeter"), "GPU energy");
  EXPECT_EQ(energy.at("SkuPriceDetails"), "");
  EXPECT_EQ(energy.at("ContractedUnitPrice"), "0.25");
  EXPECT_EQ(energy.at("InvoiceId"), "");
  const Row& hours = before.rows.at(1);
  EXPECT_EQ(hours.at("SkuId"), "gpu-hours/NVIDIA H100");
  EXPECT_EQ(hours.at("SkuPriceId"), "gpu-hours/NVIDIA H100");
  EXPECT_EQ(hours.at("SkuPriceDetails"), R"({"GpuCount":1,"x_GpuModel":"NVIDIA H100"})");
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
