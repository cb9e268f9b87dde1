// SPDX-License-Identifier: Apache-2.0
#include "app/bill/answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "app/bill/reading.h"

namespace gpuledger::app {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string error_of(const std::string& body) {
  const auto answer = parse_answer(body);
  return answer.ok() ? "(no error)" : answer.error().message;
}

TEST(BillAnswer, ReadsAVector) {
  const auto answer = parse_answer(
      R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"a","namespace":"monitoring",
      "exported_namespace":"team"},"value":[1790000000.25,"12.5"]},{"metric":{},"value":[1790000001,"+Inf"]}]},
      "warnings":[],"infos":["not interesting"],"isPartial":false,"stats":{"seriesFetched":"2"}})");
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  ASSERT_THAT(*answer, SizeIs(2));
  EXPECT_EQ((*answer)[0].samples[0].value, 12.5);
  EXPECT_EQ((*answer)[0].samples[0].at_ms, 1790000000250);
  EXPECT_EQ((*answer)[0].label("namespace"), "monitoring");
  EXPECT_EQ((*answer)[0].own_label("namespace"), "team") << "renamed by Prometheus";
  EXPECT_EQ((*answer)[0].own_label("pod"), "");
}

TEST(BillAnswer, ReadsAMatrixAndAScalar) {
  const auto matrix = parse_answer(
      R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[[1,"1"],[2,"3"]]}]}})");
  ASSERT_TRUE(matrix.ok()) << matrix.error().message;
  EXPECT_THAT((*matrix)[0].samples, SizeIs(2));
  EXPECT_EQ((*matrix)[0].samples[1].value, 3);
  const auto scalar = parse_answer(R"({"status":"success","data":{"resultType":"scalar","result":[1,"420"]}})");
  ASSERT_TRUE(scalar.ok()) << scalar.error().message;
  EXPECT_EQ(scalar->at(0).samples.at(0).value, 420);
}

// VictoriaMetrics gives the marks of series that ended as NaN in a range.
TEST(BillAnswer, ARangeIsReadWithoutTheMarksOfItsEnd) {
  const auto matrix = parse_answer(
      R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[[1,"1"],[2,"NaN"],
      [3,"4"]]},{"metric":{"a":"c"},"values":[[1,"NaN"]]}]}})");
  ASSERT_TRUE(matrix.ok()) << matrix.error().message;
  ASSERT_THAT(*matrix, SizeIs(1)) << "one that has ended before is not there";
  ASSERT_THAT((*matrix)[0].samples, SizeIs(2));
  EXPECT_EQ((*matrix)[0].samples[1].at_ms, 3000);
  EXPECT_EQ((*matrix)[0].samples[1].value, 4);
  const auto vector =
      parse_answer(R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"NaN"]}]}})");
  ASSERT_TRUE(vector.ok()) << vector.error().message;
  EXPECT_TRUE(std::isnan(vector->at(0).samples.at(0).value)) << "a value that was asked for stays";
}

TEST(BillAnswer, RefusesWhatIsNotWhole) {
  EXPECT_THAT(error_of(R"({"status":"error","errorType":"bad_data","error":"parse error"})"),
              HasSubstr("refuses the query: parse error"));
  EXPECT_THAT(error_of(R"({"status":"success","isPartial":true,"data":{"resultType":"vector","result":[]}})"),
              HasSubstr("partial"));
  EXPECT_THAT(
      error_of(R"({"status":"success","data":{"resultType":"vector","result":[]},"warnings":["store x: down"]})"),
      HasSubstr("store x: down"));
  EXPECT_THAT(error_of(R"({"status":"success","data":{"resultType":"vector"}})"), HasSubstr("no result"));
  EXPECT_THAT(error_of(R"({"status":"success","data":{"resultType":"string","result":[1,"a"]}})"),
              HasSubstr("no number"));
  EXPECT_THAT(
      error_of(R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"b"},"value":[1,2]}]}})"),
      HasSubstr("without a value"));
  EXPECT_THAT(
      error_of(R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[]}]}})"),
      HasSubstr("without a value"));
  EXPECT_THAT(
      error_of(R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"x"]}]}})"),
      HasSubstr("no number"));
  EXPECT_THAT(error_of(R"({"status":"success","data":{"resultType":"vector","result":[)"), HasSubstr("cut off"));
  EXPECT_THAT(error_of(R"({"status":"success","data":{"resultType":"vector","result":[{},{}]}})"),
              HasSubstr("without a value"));
  EXPECT_THAT(error_of(R"({"status":"success","data":)" + std::string(1000, '[')), HasSubstr("no JSON"));
  EXPECT_THAT(error_of("<html>"), HasSubstr("no JSON"));
  EXPECT_THAT(error_of("[]"), HasSubstr("is it a Prometheus server?"));
  EXPECT_THAT(error_of(R"("text")"), HasSubstr("is it a Prometheus server?"));
}

// Look-ups go through all labels of a series, so there must not be many.
TEST(BillAnswer, ASeriesHasAFewLabels) {
  const auto answer_with = [](int labels) {
    std::string metric = R"("__name__":"gpu_ledger_device_energy_joules_total")";
    for (int number = 1; number < labels; ++number) metric += ",\"l" + std::to_string(number) + "\":\"x\"";
    return R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{)" + metric +
           R"(},"value":[1,"2"]}]}})";
  };
  EXPECT_TRUE(parse_answer(answer_with(256)).ok());
  for (const int many : {257, 200'000}) {
    EXPECT_EQ(error_of(answer_with(many)),
              "the answer has a series of gpu_ledger_device_energy_joules_total with more than 256 labels");
  }
}

// Times order scrapes: one that is not a number has no place among them.
TEST(BillReading, WhatIsNoNumberIsNotKnown) {
  const auto series = [](const std::string& name, const std::string& labels, const std::string& value) {
    return R"({"metric":{"__name__":")" + name + R"(","node":"n","instance":"i")" + labels + R"(},"value":[1,")" +
           value + R"("]})";
  };
  for (const std::string wrong : {"NaN", "+Inf", "1e300"}) {
    const auto answer =
        parse_answer(R"({"status":"success","data":{"resultType":"vector","result":[)" +
                     series("gpu_ledger_device_energy_joules_total", R"(,"gpu":"0","uuid":"G")", "5") + "," +
                     series("gpu_ledger_pod_energy_standard_error_joules", R"(,"gpu":"0","pod":"a")", wrong) + "," +
                     series("gpu_ledger_snapshot_timestamp_seconds", "", wrong) + "," +
                     series("process_start_time_seconds", "", wrong) + "]}}");
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    BillFacts facts;
    const auto readings = read_nodes(*answer, facts);
    ASSERT_TRUE(readings.ok()) << readings.error().message;
    ASSERT_THAT(*readings, SizeIs(1));
    EXPECT_FALSE(readings->front().snapshot_ms) << wrong;
    EXPECT_FALSE(readings->front().started_ms) << wrong;
    EXPECT_THAT(readings->front().gpus.at("G").standard_errors, SizeIs(0)) << wrong;
  }
}

}  // namespace
}  // namespace gpuledger::app
