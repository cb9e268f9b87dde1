// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/bill/focus.h"
#include "app/bill/formats.h"
#include "app/bill/html.h"
#include "app/bill/sharing.h"
#include "app/bill/span.h"
#include "app/config/config_bill_values.h"
#include "app/config/config_values.h"
#include "unit/app/bill/fake_prometheus.h"

namespace gpuledger::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class View : public ::testing::Test {
 protected:
  View() {
    for (const int64_t at : {int64_t{0}, kHour}) {
      const auto joules = static_cast<double>(at);  // an hour has 3600
      FakeScrape& one = server_.scrape("n", at);
      one.pod("ml", "a", joules * 2000, joules * 1000).pod("web", "b", joules * 1000).nobody("idle", joules * 400);
      one.energy("gpu_ledger_host_energy_joules_total", {{"unit", "sshd.service"}, {"user", "0"}}, "0", joules * 100,
                 false);
      one.energy("gpu_ledger_unknown_owner_energy_joules_total", {}, "0", joules * 100, false);
      one.energy("gpu_ledger_slurm_job_energy_joules_total", {{"slurm_job_id", "7"}, {"step", "0"}, {"job", "7"}}, "0",
                 joules * 100, false);
      one.add("gpu_ledger_slurm_job_info",
              {{"slurm_job_id", "7"}, {"step", "0"}, {"gpu", "0"}, {"user_name", "ana"}, {"account", "physics"}}, 1);
      one.add("gpu_ledger_pod_info",
              {{"namespace", "ml"}, {"pod", "a"}, {"pod_uid", "a-uid"}, {"label_team", "vision"}}, 1);
      one.add("gpu_ledger_pod_info", {{"namespace", "web"}, {"pod", "b"}, {"pod_uid", "b-uid"}}, 1);
      one.pod_more("ml", "a", "energy_standard_error_joules", joules * 50);
      one.pod_more("ml", "a", "gpu_seconds_total", joules / 2);
    }
    BillQuery query;
    query.span = {std::chrono::sys_seconds(std::chrono::seconds(kBegin)),
                  std::chrono::sys_seconds(std::chrono::seconds(kBegin + kHour))};
    query.co2e_grams_per_kwh = 300;
    auto books = collect_books(server_.ask(), query);
    EXPECT_TRUE(books.ok()) << books.error().message;
    books_ = *std::move(books);
    view_.server = "http://prometheus:9090";
  }
  std::vector<std::string> names(const std::vector<std::string>& by) {
    view_.by = by;
    const auto statement = view_books(books_, view_);
    if (!statement.ok()) return {statement.error().message};
    EXPECT_TRUE(statement->complete());
    std::vector<std::string> out;
    for (const BillLine& line : statement->lines) out.push_back(line_name(line));
    return out;
  }
  FakePrometheus server_;
  BillBooks books_;
  BillView view_;
};

TEST_F(View, GroupsByWhatIsAskedFor) {
  EXPECT_THAT(names({"namespace"}),
              ElementsAre("ml", "web", "host: sshd.service", "slurm_job: of ana", "unknown", "nobody: idle"));
  EXPECT_THAT(names({"label:team"}),
              ElementsAre("vision", "no team", "host: sshd.service", "slurm_job: of ana", "unknown", "nobody: idle"));
  EXPECT_THAT(names({"slurm_account"}),
              ElementsAre("physics", "pods of ml", "pods of web", "host: sshd.service", "unknown", "nobody: idle"));
  EXPECT_THAT(names({"user"}), ElementsAre("0", "ana", "pods of ml", "pods of web", "unknown", "nobody: idle"));
  EXPECT_THAT(names({"slurm_job"})[0], "Slurm job 7");
  EXPECT_THAT(names({"owner"}), ElementsAre("pod", "host", "slurm_job", "unknown", "nobody: idle"));
  EXPECT_THAT(names({"node"}), ElementsAre("n", "unknown", "nobody: idle"));
  EXPECT_THAT(names({"node", "namespace"})[0], "n / ml");
  EXPECT_THAT(names({"pod"})[0], "ml/a");
}

TEST_F(View, WhatNothingHasIsAnError) {
  EXPECT_THAT(names({"label:tem"})[0], HasSubstr("--by=label:tem: nothing in this span has it"));
  EXPECT_THAT(names({"container"})[0], HasSubstr("--by=container: nothing"));
  EXPECT_THAT(names({"cluster"})[0],
              HasSubstr("--by=cluster: nothing in this span has it; the meters of no node have a label cluster"));
  view_.prices.per_gpu_hour["H100"] = 1;
  EXPECT_THAT(names({"namespace"})[0], HasSubstr("no node has a GPU of the model \"H100\" (there is \"H200\")"));
}

TEST_F(View, GroupsByTheClustersThatNodesHave) {
  auto node = books_.nodes.extract(books_.nodes.begin());
  node.key().cluster = "east";
  books_.nodes.insert(std::move(node));
  EXPECT_THAT(names({"cluster"}), ElementsAre("east", "unknown", "nobody: idle"));
}

TEST_F(View, AServerSaysWhatNothingHas) {
  view_.must_exist = false;
  view_.by = {"label:taem"};
  view_.prices.per_gpu_hour = {{"H2O0", 2}};
  const auto statement = view_books(books_, view_);
  ASSERT_TRUE(statement.ok());
  EXPECT_THAT(
      statement->unmet,
      ElementsAre(testing::Pair("--price-per-gpu-hour=H2O0", HasSubstr("(there is \"H200\")")),
                  testing::Pair("aggregate=label:taem", HasSubstr("no label label_taem: start the exporters"))));
  view_.by = {"label:team"};
  view_.prices.per_gpu_hour = {{"H200", 2}};
  EXPECT_TRUE(view_books(books_, view_)->unmet.empty());
}

TEST_F(View, AFilterLeavesOutAndChangesNoOther) {
  view_.must_exist = false;
  const auto left = [&](const std::string& filter) {
    const auto parsed = parse_allocation_filter(filter);
    EXPECT_TRUE(parsed) << parsed.error().message;
    view_.by = {"namespace"};
    view_.by.filter = std::make_shared<const AllocationFilter>(*parsed);
    const auto statement = view_books(books_, view_);
    EXPECT_TRUE(statement->complete()) << "what is left out is on lines of its own";
    std::string names;
    for (const BillLine& line : statement->lines)
      if (line.name != kLeftOut) names += line_name(line) + "; ";
    return names;
  };
  const std::string all = "ml; web; host: sshd.service; slurm_job: of ana; unknown; nobody: idle; ";
  EXPECT_EQ(left(R"(node:"n")"), all) << "unattributed energy is of a node";
  EXPECT_EQ(left(R"(node:"other")"), "");
  EXPECT_EQ(left(R"(namespace:"ml")"), "ml; ");
  EXPECT_EQ(left(R"(namespace!:"ml")"), "web; host: sshd.service; slurm_job: of ana; unknown; nobody: idle; ");
  EXPECT_EQ(left(R"(namespace:"__unallocated__")"), "host: sshd.service; slurm_job: of ana; unknown; nobody: idle; ");
  EXPECT_EQ(left(R"(pod:"a"|label[team]:"vision")"), "ml; ");
  EXPECT_EQ(left(R"(pod:"ml/a")"), "") << "a pod's name alone";
  EXPECT_EQ(left(R"(label[team]~:"is"+node:"n")"), "ml; ");
  EXPECT_EQ(left(R"(slurm_account:"physics"|user:"0")"), "host: sshd.service; slurm_job: of ana; ");
  EXPECT_EQ(left(R"(cluster:"")"), all) << "the node has none";
}

TEST_F(View, AFilterDoesNotChangeWhatIsSpread) {
  view_.spread = Spread::kByUse;
  const int64_t whole = view_books(books_, view_)->lines[0].charged_millijoules();
  view_.by.filter = std::make_shared<const AllocationFilter>(*parse_allocation_filter(R"(namespace:"ml")"));
  const auto statement = view_books(books_, view_);
  ASSERT_EQ(statement->lines[0].name, "ml");
  EXPECT_EQ(statement->lines[0].charged_millijoules(), whole);
  EXPECT_EQ(statement->sum_millijoules(), statement->meter_millijoules);
}

TEST_F(View, AServerSaysThatNothingHasWhatAFilterNames) {
  view_.must_exist = false;
  view_.by.filter = std::make_shared<const AllocationFilter>(*parse_allocation_filter(R"(label[taem]:"x"+pod!:"b")"));
  EXPECT_THAT(view_books(books_, view_)->unmet,
              ElementsAre(testing::Pair("filter=label:taem", HasSubstr("filter=label:taem: nothing in this span"))));
}

TEST_F(View, SpreadsWhatBelongsToNobody) {
  view_.spread = Spread::kByUse;
  const auto statement = view_books(books_, view_);
  ASSERT_TRUE(statement.ok());
  EXPECT_TRUE(statement->complete());
  const BillLine& ml = statement->lines[0];
  // 0.5 of 4.7 kWh, of which ml used 3 of 4.2.
  EXPECT_NEAR(static_cast<double>(ml.spread_millijoules), 0.5 * 3 / 4.2 * 3.6e9, 1);
  EXPECT_NEAR(ml.co2e_grams, (3 + 0.5 * 3 / 4.2) * 300, 1e-3);
  int64_t spread = 0;
  for (const BillLine& line : statement->lines) spread += line.spread_millijoules;
  EXPECT_EQ(spread, 0);
  EXPECT_EQ(statement->lines.back().charged_millijoules(), 0);
  view_.spread = Spread::kByAllocation;
  const auto without = view_books(books_, view_);
  ASSERT_FALSE(without.ok());
  EXPECT_THAT(without.error().message, HasSubstr("knows of no allocated GPU"));
}

TEST_F(View, Prices) {
  view_.prices = {"EUR", 0.25, {{"H200", 2}}, 1.2, std::nullopt};
  const auto statement = view_books(books_, view_);
  ASSERT_TRUE(statement.ok());
  EXPECT_NEAR(statement->lines[0].energy_cost, 3 * 1.2 * 0.25, 1e-9);
  EXPECT_NEAR(statement->lines[0].gpu_hour_cost, 1, 1e-9);
}

TEST_F(View, TheTableAddsUp) {
  view_.prices = {"EUR", 0.25, {}, 1.2, 300};
  const std::string table = bill_table(*view_books(books_, view_));
  EXPECT_THAT(table, HasSubstr("alone kWh  shared kWh  ± kWh  together kWh  GPU h  cost EUR  CO2e kg\n"));
  EXPECT_THAT(table,
              HasSubstr("ml                      2.000       1.000  0.050         3.000   0.50      0.90    1.080\n"));
  EXPECT_THAT(table,
              HasSubstr("the meter                                                4.700   0.50      1.41    1.692\n"));
  EXPECT_THAT(table, HasSubstr("\nThe GPUs were metered for 1.00 GPU hours.\n"));
  EXPECT_THAT(table, HasSubstr("Complete: the lines add up to the meter.\n"));
  EXPECT_THAT(table, Not(HasSubstr("INCOMPLETE")));
}

TEST_F(View, AnIncompleteBillSaysSoFirst) {
  books_.gaps.push_back({"n9", books_.span, "not seen any more"});
  const auto statement = view_books(books_, view_);
  const std::string table = bill_table(*statement);
  EXPECT_THAT(table, testing::StartsWith("GPU bill (INCOMPLETE), "));
  EXPECT_THAT(table, HasSubstr("Missing: n9, 2026-09-21 14:13:20Z to 2026-09-21 15:13:20Z: not seen any more\n"));
  EXPECT_THAT(bill_csv(*statement), HasSubstr(",false,"));
}

TEST_F(View, ABillOfARunningMonthSaysSo) {
  auto statement = *view_books(books_, view_);
  EXPECT_THAT(bill_csv(statement), Not(HasSubstr(",false,")));
  EXPECT_THAT(bill_focus(statement), Not(HasSubstr(",false\r\n")));
  statement.over_at = *parse_time("2026-10-01");
  const std::string said =
      "The span ends 2026-10-01 00:00:00Z and is not over. This bill counts until 2026-09-21 15:13:20Z.";
  const std::string table = bill_table(statement);
  EXPECT_THAT(table, testing::StartsWith("GPU bill (NOT OVER), 2026-09-21 14:13:20Z to 2026-09-21 15:13:20Z, "));
  EXPECT_THAT(table, HasSubstr("\n" + said + "\nComplete so far: the lines add up to the meter.\n"));
  EXPECT_THAT(bill_html(statement), HasSubstr("<strong>NOT OVER</strong> \u2013 " + said));
  EXPECT_THAT(bill_csv(statement), HasSubstr(",false,"));
  EXPECT_THAT(bill_csv(statement), Not(HasSubstr(",true,")));
  EXPECT_THAT(bill_focus(statement), HasSubstr(",false\r\n"));
  EXPECT_TRUE(statement.complete()) << "and nothing is missing";
  statement.gaps.push_back({"n9", statement.span, "not seen any more"});
  EXPECT_THAT(bill_table(statement), testing::StartsWith("GPU bill (INCOMPLETE), "));
}

TEST_F(View, TheLastLineHasTheHoursOfWorkInEveryFormat) {
  const auto statement = view_books(books_, view_);
  ASSERT_TRUE(statement.ok());
  EXPECT_DOUBLE_EQ(statement->work_gpu_hours().value_or(0), 0.5);
  EXPECT_DOUBLE_EQ(statement->meter_gpu_hours, 1);
  const auto from = [](const std::string& text, const char* start) { return text.substr(text.rfind(start)); };
  EXPECT_THAT(from(bill_table(*statement), "\nthe meter "), testing::ContainsRegex("^\nthe meter +4.700 +0.50 "));
  EXPECT_THAT(from(bill_csv(*statement), ",meter,"), HasSubstr(",4.700000000,0.500000,"));
  const std::string html = bill_html(*statement);
  EXPECT_THAT(from(html, "<tfoot>"), HasSubstr("<td>4.700</td><td>0.50<")) << "energy together, then work";
}

TEST_F(View, CsvIsExactAndSafe) {
  auto statement = *view_books(books_, view_);
  statement.lines[0].name = "=1+\"1\"";
  const std::string csv = bill_csv(statement);
  EXPECT_THAT(csv,
              HasSubstr(R"(,owner,"'=1+""1""",7200000.000,3600000.000,180000.000000,0.000,10800000.000,3.000000000,)"));
  EXPECT_THAT(csv, HasSubstr(",meter,\"\",,,,,16920000.000,4.700000000,0.500000,"));
  EXPECT_THAT(csv, HasSubstr(",true,1.000000\n"));
}

TEST(BillSharing, EveryPartIsGivenAway) {
  EXPECT_THAT(share_out(100, {1, 1, 1}), ElementsAre(34, 33, 33));
  EXPECT_THAT(share_out(-7, {2, 0, 1}), ElementsAre(-4, 0, -3));
  const auto large = share_out(int64_t{9'000'000'000'000'000'007}, {0.1, 0.2, 0.7});
  EXPECT_EQ(large[0] + large[1] + large[2], 9'000'000'000'000'000'007);
  EXPECT_THAT(round_parts({1400, 1400, 1200}, 1000, 4), ElementsAre(2, 1, 1));
  EXPECT_THAT(round_parts({-1500, 3500}, 1000, 2), ElementsAre(-1, 3));
}

TEST(BillFormats, EveryWordHasAFunction) {
  std::vector<std::string_view> words;
  for (const BillFormat& format : bill_formats()) words.push_back(format.name);
  EXPECT_THAT(words, testing::ElementsAreArray(kBillFormats));
}

TEST(BillSpan, MonthsAndTimes) {
  const auto now = *parse_time("2026-11-16T14:00:00Z");
  Config config;
  EXPECT_THAT(bill_span(config, now).error().message, HasSubstr("write one of --month"));
  config.bill_month = *parse_month("2026-10");
  EXPECT_EQ(bill_span(config, now)->begin, *parse_time("2026-10-01"));
  EXPECT_EQ(bill_span(config, now)->end, *parse_time("2026-11-01T00:00:00Z"));
  EXPECT_FALSE(end_to_come(config, now));
  config.bill_month = *parse_month("2026-11");
  EXPECT_EQ(bill_span(config, now)->end, now - kOnTheWay) << "not over yet";
  EXPECT_EQ(end_to_come(config, now), *parse_time("2026-12-01"));
  config.bill_month = *parse_month("2026-12");
  EXPECT_FALSE(bill_span(config, now).ok());
  config.bill_month.reset();
  config.bill_from = *parse_time("2026-11-16T10:00:00+02:00");
  EXPECT_EQ(bill_span(config, now)->begin, *parse_time("2026-11-16T08:00:00Z"));
  EXPECT_EQ(bill_span(config, now)->end, now - kOnTheWay);
  EXPECT_FALSE(end_to_come(config, now)) << "it has no end of its own";
  config.bill_to = now - std::chrono::seconds(1);
  EXPECT_EQ(bill_span(config, now)->end, *config.bill_to) << "who says so gets it";
  config.bill_to = now + std::chrono::seconds(1);
  EXPECT_EQ(bill_span(config, now)->end, now - kOnTheWay);
  EXPECT_EQ(end_to_come(config, now), *config.bill_to);
  config.bill_from = now - std::chrono::seconds(10);
  EXPECT_THAT(bill_span(config, now).error().message, HasSubstr("has just begun"));
  config.bill_to = *parse_time("2026-11-15");
  EXPECT_THAT(bill_span(config, now).error().message, HasSubstr("--to"));
  EXPECT_EQ(*bill_step({}, {now - std::chrono::hours(24 * 63), now}), std::chrono::hours(6));
  EXPECT_EQ(*bill_step({}, {now - std::chrono::hours(24 * 31), now}), std::chrono::hours(1));
  config.bill_step = std::chrono::seconds(1);
  EXPECT_FALSE(bill_step(config, {now - std::chrono::hours(24 * 31), now}).ok());
}

TEST(BillValues, RefuseWithOneLine) {
  for (const char* text : {"2026-13", "2026", "2026-1", "x", "2026-10-01"})
    EXPECT_FALSE(parse_month(text).ok()) << text;
  for (const char* text : {"2026-02-30", "2026-10-01T25:00:00Z", "2026-10-01T10:00:00", "yesterday", ""}) {
    EXPECT_FALSE(parse_time(text).ok()) << text;
  }
  for (const char* text : {"-1", "nan", "inf", "1e99", "0,25", ""}) EXPECT_FALSE(parse_amount(text).ok()) << text;
  for (const char* text : {"H200", "=1", "H200=x"}) EXPECT_FALSE(parse_gpu_hour_price(text).ok()) << text;
  for (const char* text : {"cluster=east", "{a=\"b\"}", "a=\"b"}) EXPECT_FALSE(parse_matchers(text).ok()) << text;
  EXPECT_EQ(*parse_matchers("a=\"b\", "), "a=\"b\"");
  for (const char* text : {"team", "label:", "unknown"}) EXPECT_FALSE(check_bill_by(text).ok()) << text;
  for (const char* text : {"slurm_job", "label:team", "pod"}) EXPECT_TRUE(check_bill_by(text).ok()) << text;
  EXPECT_FALSE(parse_pue("0.9").ok());
  EXPECT_FALSE(parse_currency("euro").ok());
}

}  // namespace
}  // namespace gpuledger::app
