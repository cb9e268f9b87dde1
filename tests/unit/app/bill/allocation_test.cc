// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/bill/allocation_json.h"
#include "app/bill/allocation_question.h"
#include "app/bill/amounts.h"
#include "unit/app/bill/sample_statement.h"

namespace gpuledger::app {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::chrono::sys_seconds kNow = at(2026, 11, 16, 13, 37) + std::chrono::seconds(42);

Result<AllocationQuestion> ask(std::string_view query) {
  return parse_allocation_question(query, kNow);
}

std::string error_of(std::string_view query) {
  const auto question = ask(query);
  return question ? "" : question.error().message;
}

TEST(AllocationQuestion, ReadsItsParameters) {
  const auto question = ask("window=7d&aggregate=namespace%2Clabel:team&step=1d&includeIdle=true&resolution=1m");
  ASSERT_TRUE(question) << question.error().message;
  EXPECT_EQ(question->by, "namespace,label:team");
  EXPECT_TRUE(question->include_idle);
  EXPECT_EQ(question->spread, Spread::kKeep);
  ASSERT_EQ(question->spans.size(), 7u);
  EXPECT_EQ(question->spans.front().begin, at(2026, 11, 10));
  EXPECT_EQ(question->spans.back().begin, at(2026, 11, 16));
  EXPECT_EQ(question->spans.back().end, at(2026, 11, 16, 13, 37)) << "not in the future";
  EXPECT_EQ(ask("window=7d&step=1d&accumulate=true")->spans.size(), 1u);
  EXPECT_EQ(ask("window=7d")->by, "pod");
  EXPECT_EQ(ask("window=7d&shareIdle=true")->spread, Spread::kByUse);
  EXPECT_TRUE(ask("window=7d&aggregate=all")->in_one);
  EXPECT_TRUE(parse_allocation_question("window=today", at(2026, 11, 16))->spans.empty()) << "midnight";
  EXPECT_EQ(ask("window=7d")->key(), ask("&window=%37d&&includeIdle=0")->key());
  EXPECT_NE(ask("window=7d")->key(), ask("window=7d&includeIdle=1")->key());
  EXPECT_NE(ask("window=7d")->key(), ask("window=7d&step=1d")->key());
}

TEST(AllocationQuestion, WhoAsksWithinAMinuteAsksTheSame) {
  for (const std::string window : {"today", "week", "month", "12h", "7d", "30m"}) {
    const auto at_second = [&](int second) {
      return parse_allocation_question("window=" + window, at(2026, 11, 16, 13, 37) + std::chrono::seconds(second));
    };
    EXPECT_EQ(at_second(31)->key(), at_second(59)->key()) << window;
    EXPECT_LE(at_second(31)->spans.back().end, at(2026, 11, 16, 13, 37)) << window;
  }
  const auto early = parse_allocation_question("window=month", at(2026, 11, 16, 13, 37) + std::chrono::seconds(29));
  EXPECT_EQ(early->spans.back().end, at(2026, 11, 16, 13, 36)) << "the last scrape may still be on its way";
  EXPECT_TRUE(parse_allocation_question("window=month", at(2026, 11, 1))->spans.empty()) << "it begins now";
}

std::vector<std::string> sets(const std::string& query) {
  std::vector<std::string> texts;
  const auto question = ask(query);
  EXPECT_TRUE(question) << query << ": " << question.error().message;
  if (question)
    for (const BillSpan& span : question->spans) texts.push_back(utc_text(span.begin) + " " + utc_text(span.end));
  return texts;
}

// As OpenCost: whole ones, also those that the window has a part of. It is Monday, the 16th of November, 13:37.
TEST(AllocationQuestion, AccumulatesByTheCalendar) {
  using testing::ElementsAre;
  const std::string now = "2026-11-16T13:37:00Z";
  EXPECT_THAT(sets("window=2026-11-14T00:00:00Z,2026-11-15T23:59:59Z&accumulate=day"),
              ElementsAre("2026-11-14T00:00:00Z 2026-11-15T00:00:00Z", "2026-11-15T00:00:00Z 2026-11-16T00:00:00Z"));
  EXPECT_THAT(sets("window=today&accumulate=hour").size(), 14u);
  EXPECT_EQ(sets("window=today&accumulate=hour").back(), "2026-11-16T13:00:00Z " + now);
  for (const std::string week : {"week", "weeknow"})
    EXPECT_THAT(sets("window=7d&accumulate=" + week),
                ElementsAre("2026-11-08T00:00:00Z 2026-11-15T00:00:00Z", "2026-11-15T00:00:00Z " + now));
  EXPECT_THAT(sets("window=2024-02-29,2024-03-02&accumulate=month"),
              ElementsAre("2024-02-01T00:00:00Z 2024-03-01T00:00:00Z", "2024-03-01T00:00:00Z 2024-04-01T00:00:00Z"));
  EXPECT_THAT(sets("window=2025-12-31,2026-07-02&accumulate=quarter"),
              ElementsAre("2025-10-01T00:00:00Z 2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z 2026-04-01T00:00:00Z",
                          "2026-04-01T00:00:00Z 2026-07-01T00:00:00Z", "2026-07-01T00:00:00Z 2026-10-01T00:00:00Z"));
  EXPECT_THAT(sets("window=month&accumulate=month&step=1d"), ElementsAre("2026-11-01T00:00:00Z " + now));
  for (const std::string all : {"all", "true", "1"})
    EXPECT_THAT(sets("window=yesterday&step=1h&accumulate=" + all),
                ElementsAre("2026-11-15T00:00:00Z 2026-11-16T00:00:00Z"));
  EXPECT_EQ(sets("window=yesterday&step=1h&accumulate=false").size(), 24u);
  EXPECT_EQ(error_of("window=30d&accumulate=hour"), "step: more than 366 sets; write a longer step or accumulate");
}

TEST(AllocationQuestion, NoSetEndsWhileScrapesMayBeOnTheirWay) {
  const auto sets_after_midnight = [](const std::string& query, int seconds) {
    const auto now = at(2026, 11, 16) + std::chrono::seconds(seconds);
    return parse_allocation_question("window=" + query, now)->spans;
  };
  for (const std::string query : {"2d&accumulate=day", "2d&step=1d", "yesterday", "yesterday&accumulate=day",
                                  "2026-11-15,2026-11-16", "1h&accumulate=hour"})
    for (const int seconds : {0, 9, 29, 30, 59}) {
      const auto spans = sets_after_midnight(query, seconds);
      if (query.starts_with("1h")) {
        EXPECT_TRUE(spans.empty()) << "the new hour has no full minute yet";
        continue;
      }
      ASSERT_EQ(spans.size(), 1u) << query << ": the new day has no full minute yet";
      EXPECT_EQ(spans[0].begin, at(2026, 11, 15)) << query;
      EXPECT_EQ(spans[0].end, seconds < 30 ? at(2026, 11, 15, 23, 59) : at(2026, 11, 16)) << query << seconds;
    }
  const auto minute = sets_after_midnight("1m", 9);
  ASSERT_EQ(minute.size(), 1u);
  EXPECT_EQ(minute[0].begin, at(2026, 11, 15, 23, 58));
  EXPECT_EQ(minute[0].end, at(2026, 11, 15, 23, 59));
}

TEST(AllocationQuestion, WhatIsKnownOfNobodyIsNoError) {
  for (const std::string by : {"controllerKind", "controller", "deployment", "job", "service", "container"})
    EXPECT_EQ(ask("window=7d&aggregate=" + by)->by, by);
  EXPECT_TRUE(ask("window=7d&metrics=totalCost,gpuCost&sharelb=false&idleByNode=true"));
}

TEST(AllocationQuestion, AFilterIsAnotherQuestion) {
  const auto question = ask("window=7d&filter=namespace:%22a%22%2Bnode:%22n1%22");
  ASSERT_TRUE(question) << question.error().message;
  EXPECT_EQ(question->filter_text, "namespace:\"a\"+node:\"n1\"");
  EXPECT_TRUE(question->filter);
  EXPECT_NE(question->key(), ask("window=7d")->key());
  EXPECT_NE(question->key(), ask("window=7d&filter=namespace:%22a%22")->key());
  EXPECT_FALSE(ask("window=7d&filter=")->filter) << "the front end sends an empty one";
  AllocationQuestion summary = *question;
  summary.form = AllocationForm::kSummary;
  EXPECT_NE(summary.key(), question->key());
}

TEST(AllocationQuestion, AsksForNames) {
  const auto names = [](const std::string& query) {
    return parse_allocation_question("window=7d" + query, kNow, AllocationForm::kNames);
  };
  const auto question = names("&field=label:team&search=Vi&limit=25&filter=node:%22n%22");
  ASSERT_TRUE(question) << question.error().message;
  EXPECT_EQ(question->by, "label:team");
  EXPECT_EQ(question->search, "Vi");
  EXPECT_EQ(question->most_names, 25u);
  EXPECT_TRUE(question->filter);
  EXPECT_EQ(question->spans.size(), 1u);
  EXPECT_EQ(names("&field=controllerName")->most_names, 100u);
  EXPECT_NE(question->key(), names("&field=label:team&search=Sp&limit=25&filter=node:%22n%22")->key());
  EXPECT_THAT(names("&field=provider").error().message, HasSubstr("field: \"provider\" is not known here"));
  for (const std::string field : {"all", "namespace,pod"})
    EXPECT_THAT(names("&field=" + field).error().message, HasSubstr("field: \"" + field + "\" is not known here"))
        << "no filter takes it";
  for (const std::string limit : {"0", "1001", "-1", "many", "5x"})
    EXPECT_EQ(names("&limit=" + limit).error().message, "limit: \"" + limit + "\" is not a number from 1 to 1000");
  EXPECT_EQ(names("&aggregate=pod").error().message,
            "\"aggregate\" is not known here (window, filter, field, search, limit)");
}

TEST(AllocationQuestion, SaysWhatIsWrong) {
  EXPECT_EQ(error_of(""), "window: is missing (write window=7d)");
  EXPECT_THAT(error_of("window=soon"), HasSubstr("window: \"soon\" is not a window"));
  EXPECT_EQ(error_of("window=1893456000,1893456060"), "window: it begins in the future");
  EXPECT_EQ(error_of("window=7d&aggregate=servise"),
            "aggregate: \"servise\" is not known here (cluster, node, namespace, pod, label:NAME, user, slurm_account, "
            "all)");
  EXPECT_THAT(error_of("window=7d&aggregate=label:a%22%7D"), HasSubstr("aggregate: "));
  EXPECT_THAT(error_of("window=7d&aggregate=node,node,node,node,node,node"), HasSubstr("more than 5"));
  EXPECT_EQ(error_of("window=7d&step=1s"), "step: \"1s\" is shorter than a minute");
  EXPECT_THAT(error_of("window=7d&step=x"), HasSubstr("step: \"x\" is not a duration"));
  EXPECT_EQ(error_of("window=7d&step=1m"), "step: more than 366 sets; write a longer step or accumulate");
  EXPECT_EQ(error_of("window=7d&accumulate=yes"),
            "accumulate: \"yes\" is not true, false, all, hour, day, week, month or quarter");
  EXPECT_EQ(error_of("window=7d&includeIdle=yes"), "includeIdle: \"yes\" is not true or false");
  EXPECT_THAT(error_of("window=7d&filter=namespace:a"), HasSubstr("filter: cannot be read at \"a\""));
  EXPECT_THAT(error_of("window=7d&format=csv"), HasSubstr("\"format\" is not known here"));
  EXPECT_EQ(error_of("window=7d&window=7d"), "\"window\" is given twice");
  EXPECT_THAT(error_of("window=%7"), HasSubstr("hexadecimal"));
  EXPECT_THAT(error_of("window=%zz"), HasSubstr("hexadecimal"));
}

json set_of(const Statement& statement, AllocationShape shape) {
  const json answer = json::parse(allocation_json({statement}, shape));
  EXPECT_EQ(answer.at("code"), 200);
  EXPECT_EQ(answer.at("data").size(), 1u);
  return answer.at("data").at(0);
}

double sum(const json& set, const char* field) {
  double all = 0;
  for (const auto& [name, allocation] : set.items()) all += allocation.at(field).get<double>();
  return all;
}

TEST(AllocationJson, HasTheShapeThatOpenCostsUsersKnow) {
  const json set = set_of(sample_statement(), {.include_idle = true});
  const json& vision = set.at("vision");
  EXPECT_EQ(vision.at("name"), "vision");
  EXPECT_EQ(vision.at("properties").at("cluster"), "east");
  EXPECT_EQ(vision.at("properties").at("labels").at("team"), "vision");
  EXPECT_EQ(vision.at("window").at("start"), "2026-10-01T00:00:00Z");
  EXPECT_EQ(vision.at("end"), "2026-11-01T00:00:00Z");
  EXPECT_EQ(vision.at("minutes"), 44640.0);
  EXPECT_EQ(vision.at("gpuHours"), 3720.0);
  EXPECT_EQ(vision.at("gpuCount"), 5.0);
  EXPECT_NEAR(vision.at("gpuEfficiency").get<double>(), 2900.25 / 3720, 1e-12);
  for (const char* cost : {"cpuCost", "ramCost", "pvCost", "networkCost", "sharedCost", "externalCost"})
    EXPECT_EQ(vision.at(cost), 0) << cost;
  EXPECT_FALSE(vision.contains("cpuCoreHours")) << "not known";
  EXPECT_NEAR(vision.at("gpuEnergyStandardErrorKwh").get<double>(), 411.3e6 * 0.04 / 3.6e6, 1e-6);
  EXPECT_TRUE(set.at("speech").at("gpuEfficiency").is_null()) << "its allocation is not known";
  EXPECT_TRUE(set.contains("__idle__"));
  EXPECT_NEAR(set.at("__unallocated__").at("gpuEnergyKwh").get<double>(), (12'345'678'901 + 1'000'001) / 3.6e9, 1e-12);
  EXPECT_FALSE(set.at("__idle__").contains("gpuEnergyStandardErrorKwh")) << "measured";
}

TEST(AllocationJson, AveragesAreOfTheSetsHours) {
  const json set = set_of(sample_statement(), {.include_idle = true});
  EXPECT_EQ(set.at("vision").at("gpuRequestAverage"), 3720.0 / 744);
  EXPECT_EQ(set.at("vision").at("gpuUsageAverage"), 2900.25 / 744);
  EXPECT_TRUE(set.at("speech").at("gpuRequestAverage").is_null()) << "its allocation is not known";
  EXPECT_EQ(set.at("speech").at("gpuUsageAverage"), 801.5 / 744);
  EXPECT_TRUE(set.at("__idle__").at("gpuUsageAverage").is_null());
}

TEST(AllocationJson, ASummaryHasOpenCostsShapeAndFields) {
  Statement later = sample_statement();
  later.span = {at(2026, 11, 1), at(2026, 12, 1)};
  const json data =
      json::parse(allocation_json({sample_statement(), later}, {.include_idle = true, .summary = true})).at("data");
  EXPECT_EQ(data.at("step"), 744LL * 3600 * 1'000'000'000);
  EXPECT_EQ(data.at("window"), json({{"start", "2026-10-01T00:00:00Z"}, {"end", "2026-12-01T00:00:00Z"}}));
  ASSERT_EQ(data.at("sets").size(), 2u);
  EXPECT_EQ(data.at("sets").at(1).at("window").at("start"), "2026-11-01T00:00:00Z");
  const json all = set_of(sample_statement(), {.include_idle = true});
  const json& summary = data.at("sets").at(0).at("allocations");
  EXPECT_EQ(summary.size(), all.size());
  for (const char* field : {"name", "start", "end", "gpuCost", "gpuCostIdle", "gpuRequestAverage", "gpuUsageAverage",
                            "cpuCost", "ramCost", "totalCost", "totalEfficiency", "gpuEnergyKwh"})
    EXPECT_EQ(summary.at("vision").at(field), all.at("vision").at(field)) << field;
  EXPECT_FALSE(summary.at("vision").contains("properties"));
  const json none = json::parse(allocation_json({}, {.summary = true})).at("data");
  EXPECT_EQ(none.at("sets"), json::array());
  EXPECT_TRUE(none.at("window").at("start").is_null());
}

TEST(AllocationJson, NamesAreThoseOfOwners) {
  const auto names = [](const Statement& statement, std::string_view search, size_t most) {
    return json::parse(names_json({statement, statement}, search, most)).at("data").at("data");
  };
  Statement statement = sample_statement();
  EXPECT_EQ(names(statement, "", 100), json({"speech", "vision"}));
  EXPECT_EQ(names(statement, "VIS", 100), json({"vision"}));
  EXPECT_EQ(names(statement, "", 1), json({"speech"}));
  EXPECT_EQ(names(statement, "triton", 100), json::array()) << "it has no team";
  statement.by = "pod";
  statement.lines[0].name = "research/train-0";
  statement.lines[0].properties["pod"] = "train-0";
  EXPECT_EQ(names(statement, "train", 100), json({"train-0"})) << "as a filter has it";
}

TEST(AllocationJson, LeavesOutWhatTheFilterLeavesOut) {
  Statement statement = sample_statement();
  for (const size_t left_out : {2u, 3u, 4u}) statement.lines[left_out].name = kLeftOut;
  const json set = set_of(statement, {.include_idle = true});
  EXPECT_FALSE(set.contains("__unallocated__"));
  EXPECT_EQ(std::llround(set.at("__idle__").at("gpuEnergyKwh").get<double>() * 3.6e9), 3'000'000'011) << "not idle";
  EXPECT_EQ(set.size(), 3u);
}

TEST(AllocationJson, AddsUpToTheMeterAndTheCost) {
  for (const Statement& statement : {sample_statement(), spread_statement()})
    for (const bool in_one : {false, true}) {
      const json set = set_of(statement, {true, in_one});
      EXPECT_EQ(std::llround(sum(set, "gpuEnergyKwh") * 3.6e9), statement.meter_millijoules);
      double cost = 0;
      for (const BillLine& line : statement.lines) cost += line.cost();
      EXPECT_NEAR(sum(set, "totalCost"), cost, 1e-9);
    }
  EXPECT_FALSE(set_of(sample_statement(), {}).contains("__idle__"));
  const json shared = set_of(spread_statement(), {.include_idle = true});
  EXPECT_FALSE(shared.contains("__idle__")) << "it is in the others";
  EXPECT_GT(shared.at("vision").at("gpuCostIdle").get<double>(), 1);
  const json one = set_of(sample_statement(), {.include_idle = true, .in_one = true});
  EXPECT_EQ(one.size(), 2u);
  EXPECT_TRUE(one.contains("all"));
}

TEST(AllocationJson, NamesSeveralGroupsAndOddOnes) {
  Statement statement = sample_statement();
  statement.by = "namespace,label:team";
  statement.lines[0].name = "research / vision";
  statement.lines[1].name = "\xff\"\n</script>";
  const json set = set_of(statement, {});
  EXPECT_TRUE(set.contains("research/vision"));
  EXPECT_TRUE(set.contains("\ufffd\"\n</script>"));
}

TEST(AllocationJson, HoursOfWorkThatAreInAnotherLineCountOnce) {
  Statement statement = sample_statement();
  statement.lines[1].held_gpu_hours.clear();
  const json speech = set_of(statement, {}).at("speech");
  EXPECT_TRUE(speech.at("gpuHours").is_null());
  EXPECT_TRUE(speech.at("gpuCount").is_null());
  EXPECT_EQ(speech.at("gpuWorkHours"), 801.5);
}

TEST(AllocationJson, WithoutAPriceThereIsNoCost) {
  Statement statement = sample_statement();
  statement.prices.per_kwh = 0;
  statement.prices.per_gpu_hour.clear();
  price(statement);
  for (const char* cost : {"gpuCost", "gpuCostIdle", "totalCost"})
    EXPECT_TRUE(set_of(statement, {}).at("vision").at(cost).is_null()) << cost;
}

TEST(AllocationJson, WarnsOfWhatIsMissing) {
  Statement statement = sample_statement();
  EXPECT_FALSE(json::parse(allocation_json({statement}, {})).contains("warning"));
  statement.gaps.push_back({"node7", {at(2026, 10, 2), at(2026, 10, 3)}, "no reading"});
  EXPECT_EQ(json::parse(allocation_json({sample_statement(), statement}, {})).at("warning"),
            "INCOMPLETE from 2026-10-01T00:00:00Z to 2026-11-01T00:00:00Z: node7 from 2026-10-02T00:00:00Z to "
            "2026-10-03T00:00:00Z: no reading");
  EXPECT_EQ(allocation_error(400, "a \"b\""), R"({"code":400,"message":"a \"b\""})");
}

TEST(AllocationJson, WarnsOfWhatNoSetHas) {
  Statement statement = sample_statement();
  statement.unmet = {{"aggregate=label:taem", "nothing has taem"}, {"--price-per-gpu-hour=L4", "no node has L4"}};
  Statement other = statement, empty;
  other.unmet.erase("--price-per-gpu-hour=L4");
  const auto warning = [](const std::vector<Statement>& statements, const AllocationShape& shape) {
    return json::parse(allocation_json(statements, shape)).value("warning", "");
  };
  EXPECT_EQ(warning({statement}, {}), "no node has L4; nothing has taem");
  EXPECT_EQ(warning({statement, other, empty}, {}), "nothing has taem") << "one set has an L4";
  EXPECT_EQ(warning({statement}, {.in_one = true}), "no node has L4") << "groups do not matter";
  EXPECT_EQ(warning({statement, sample_statement()}, {}), "");
  statement.gaps.push_back({"node7", {at(2026, 10, 2), at(2026, 10, 3)}, "no reading"});
  EXPECT_THAT(warning({statement}, {}), testing::StartsWith("INCOMPLETE"));
  EXPECT_THAT(warning({statement}, {}), testing::EndsWith("; no node has L4; nothing has taem"));
}

TEST(AllocationJson, HasTheNotesOfABillOnceEach) {
  Statement statement = sample_statement();
  EXPECT_FALSE(json::parse(allocation_json({statement}, {})).contains("notes"));
  statement.remarks = {"n1: restarted", "hours of \"L4\" have no price"};
  const json answer = json::parse(allocation_json({statement, statement}, {}));
  EXPECT_EQ(answer.at("notes"), json(statement.remarks));
  EXPECT_FALSE(answer.contains("warning")) << "the bill is complete";
  for (int i = 0; i < 200; ++i) statement.remarks.push_back(std::to_string(i));
  EXPECT_EQ(json::parse(allocation_json({statement}, {})).at("notes").size(), 101u);
  EXPECT_EQ(json::parse(allocation_json({statement}, {})).at("notes").back(), "and 102 more");
}

// The page shows what the code writes.
TEST(AllocationJson, ThePageOfTheApiHasARealExample) {
  std::ifstream file(GPU_LEDGER_SOURCE_DIR "/docs/allocation-api.md");
  std::stringstream page;
  page << file.rdbuf();
  const std::string text = page.str();
  const size_t begin = text.find("```json\n") + 8, end = text.find("```", begin);
  ASSERT_NE(end, std::string::npos);
  Statement statement = sample_statement();
  statement.lines.resize(1);
  statement.meter_millijoules = statement.sum_millijoules();
  const nlohmann::ordered_json made =
      nlohmann::ordered_json::parse(allocation_json({statement}, {.include_idle = true}));
  EXPECT_EQ(text.substr(begin, end - begin), made.dump(2) + "\n");
}

}  // namespace
}  // namespace gpuledger::app
