// SPDX-License-Identifier: Apache-2.0
#include "app/bill/window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/bill/amounts.h"
#include "unit/app/bill/sample_statement.h"

namespace gpuledger::app {
namespace {

// A Monday.
const std::chrono::sys_seconds kAskedAt = at(2026, 11, 16, 13, 37) + std::chrono::seconds(42);

std::string window(std::string_view text, std::chrono::sys_seconds now = kAskedAt) {
  const auto span = parse_window(text, now);
  return span ? utc_text(span->begin) + " " + utc_text(span->end) : span.error().message;
}

TEST(BillWindow, ReadsWords) {
  EXPECT_EQ(window("today"), "2026-11-16T00:00:00Z 2026-11-17T00:00:00Z");
  EXPECT_EQ(window("yesterday"), "2026-11-15T00:00:00Z 2026-11-16T00:00:00Z");
  EXPECT_EQ(window("week"), "2026-11-15T00:00:00Z 2026-11-22T00:00:00Z") << "from Sunday";
  EXPECT_EQ(window("lastweek"), "2026-11-08T00:00:00Z 2026-11-15T00:00:00Z");
  EXPECT_EQ(window("month"), "2026-11-01T00:00:00Z 2026-12-01T00:00:00Z");
  EXPECT_EQ(window("lastmonth"), "2026-10-01T00:00:00Z 2026-11-01T00:00:00Z");
  EXPECT_EQ(window("lastmonth", at(2026, 1, 31)), "2025-12-01T00:00:00Z 2026-01-01T00:00:00Z");
  EXPECT_EQ(window("month", at(2026, 12, 31)), "2026-12-01T00:00:00Z 2027-01-01T00:00:00Z");
  EXPECT_EQ(window("week", at(2026, 11, 15)), "2026-11-15T00:00:00Z 2026-11-22T00:00:00Z");
}

TEST(BillWindow, ReadsLengths) {
  EXPECT_EQ(window("30m"), "2026-11-16T13:07:00Z 2026-11-16T13:37:00Z");
  EXPECT_EQ(window("12h"), "2026-11-16T02:00:00Z 2026-11-16T14:00:00Z");
  EXPECT_EQ(window("7d"), "2026-11-10T00:00:00Z 2026-11-17T00:00:00Z");
  EXPECT_EQ(window("1w"), "2026-11-10T00:00:00Z 2026-11-17T00:00:00Z");
  EXPECT_EQ(window("2w"), "2026-11-03T00:00:00Z 2026-11-17T00:00:00Z");
}

TEST(BillWindow, ReadsPairsOfTimes) {
  EXPECT_EQ(window("2026-10-01T00:00:00Z,2026-11-01T00:00:00Z"), "2026-10-01T00:00:00Z 2026-11-01T00:00:00Z");
  EXPECT_EQ(window("2026-10-01T00:00:00+02:00,2026-10-01T00:00:00-05:30"), "2026-09-30T22:00:00Z 2026-10-01T05:30:00Z");
  EXPECT_EQ(window("2026-10-01,2026-11-01"), "2026-10-01T00:00:00Z 2026-11-01T00:00:00Z");
  EXPECT_EQ(window("1586822400,1586908800"), "2020-04-14T00:00:00Z 2020-04-15T00:00:00Z");
}

TEST(BillWindow, RefusesEverythingElse) {
  using namespace std::string_view_literals;
  for (const std::string_view odd : {""sv,
                                     " "sv,
                                     "Today"sv,
                                     "7"sv,
                                     "d"sv,
                                     "0d"sv,
                                     "-1d"sv,
                                     "+1d"sv,
                                     "1.5h"sv,
                                     "7D"sv,
                                     "7dd"sv,
                                     "7 d"sv,
                                     "1y"sv,
                                     "99999999999999999999d"sv,
                                     "9223372036854775807m"sv,
                                     "9999999w"sv,
                                     ","sv,
                                     ",,"sv,
                                     "1,"sv,
                                     ",1"sv,
                                     "1586822400"sv,
                                     "1586822400,1586908800,1"sv,
                                     "1586822400, 1586908800"sv,
                                     "999999999999999999,1"sv,
                                     "2026-10-01T00:00:00,2026-11-01T00:00:00"sv,
                                     "2026-13-01T00:00:00Z,2026-11-01T00:00:00Z"sv,
                                     "2026-02-30T00:00:00Z,2026-11-01T00:00:00Z"sv,
                                     "2026-10-01T24:00:00Z,2026-11-01T00:00:00Z"sv,
                                     "2026-10-01T00:00:00+2:00,2026-11-01T00:00:00Z"sv,
                                     "2026-10-01T00:00:00 02:00,2026-11-01T00:00:00Z"sv,
                                     "2026-10-01T00:00:00+99:00,2026-11-01T00:00:00Z"sv,
                                     "\0"sv,
                                     "7d\0"sv,
                                     "\xff\xfe"sv,
                                     "today\n"sv}) {
    const auto span = parse_window(odd, kAskedAt);
    ASSERT_FALSE(span) << odd;
    EXPECT_THAT(span.error().message, testing::HasSubstr("is not a window (write today")) << odd;
    EXPECT_EQ(span.error().message.find_first_of("\n\xff"), std::string::npos);
  }
  EXPECT_EQ(window("1586908800,1586822400"), "window: \"1586908800,1586822400\" does not end after it begins");
  EXPECT_EQ(window("1586908800,1586908800"), "window: \"1586908800,1586908800\" does not end after it begins");
  EXPECT_EQ(window("0,1586908800"), "window: \"0,1586908800\" is not between the years 2000 and 2200");
  EXPECT_EQ(window("1586822400,99999999999"),
            "window: \"1586822400,99999999999\" is not between the years 2000 and 2200");
  EXPECT_EQ(window("1009843200,1586822400"), "window: \"1009843200,1586822400\" is longer than ten years");
  EXPECT_EQ(window("4000d"), "window: \"4000d\" is longer than ten years");
  EXPECT_LT(window(std::string(100'000, 'x')).size(), 400u);
}

}  // namespace
}  // namespace gpuledger::app
