// SPDX-License-Identifier: Apache-2.0
#include "app/top/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "app/top/feed.h"
#include "top_books.h"

namespace gpuledger::app::top {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

View sorted_by(SortBy sort, bool reverse = false) {
  View view;
  view.sort = sort;
  view.reverse = reverse;
  return view;
}
View filtered_by(const std::string& filter) {
  View view;
  view.filter = filter;
  return view;
}
View on_gpu(uint32_t gpu) {
  View view;
  view.gpu = gpu;
  return view;
}
View by_owner(View view = {}) {
  view.by_owner = true;
  return view;
}

std::vector<std::string> names(const Books& now, const View& view) {
  std::vector<std::string> names;
  for (const Row& row : make_rows(now, &kBefore, view)) names.push_back(row.process);
  return names;
}

TEST(TopRows, OrdersByWhatIsAskedFor) {
  View view;
  EXPECT_THAT(names(kNow, view), ElementsAre("p13", "p12", "p11"));
  view.reverse = true;
  EXPECT_THAT(names(kNow, view), ElementsAre("p11", "p12", "p13"));
  view = sorted_by(SortBy::kMemory);
  EXPECT_THAT(names(kNow, view), ElementsAre("p12", "p11", "p13"));
  view = sorted_by(SortBy::kEnergy);
  EXPECT_THAT(names(kNow, view), ElementsAre("p11", "p12", "p13"));
  view = sorted_by(SortBy::kPid);
  EXPECT_THAT(names(kNow, view), ElementsAre("p11", "p12", "p13"));
  view.reverse = true;
  EXPECT_THAT(names(kNow, view), ElementsAre("p13", "p12", "p11"));
  Books books = kNow;
  books.processes[1].idle_seconds = 60;
  books.processes[0].idle_seconds = 5;
  EXPECT_THAT(names(books, sorted_by(SortBy::kIdle)), ElementsAre("p12", "p11", "p13"));
  books.processes[2].owner = "a";
  EXPECT_THAT(names(books, sorted_by(SortBy::kOwner)), ElementsAre("p13", "p11", "p12"));
  books.processes[2].active = false;
  EXPECT_THAT(names(books, sorted_by(SortBy::kOwner)), ElementsAre("p11", "p12", "p13")) << "who ended is last";
  EXPECT_THAT(names(books, sorted_by(SortBy::kOwner, true)), ElementsAre("p12", "p11", "p13"));
}

TEST(TopRows, AProcessWhoseOwnerChangedHasTwoAccounts) {
  Books now = kNow, before = kBefore;
  for (Books* books : {&now, &before}) {
    Books::Process earlier = process(11, 5000);  // what was booked before its owner was known
    earlier.owner_kind = earlier.owner = "unknown";
    books->processes.push_back(earlier);
    Books::Process container = process(12, 4000);
    container.container = "sidecar";
    books->processes.push_back(container);
  }
  const std::vector<Row> rows = make_rows(now, &before, {});
  ASSERT_FALSE(rows.empty());
  for (const Row& row : rows) {
    ASSERT_TRUE(row.watts) << row.owner;
    EXPECT_EQ(*row.watts, row.joules >= 4000 ? 0 : static_cast<double>(*row.pid)) << row.owner;
  }
}

// --max-series leaves accounts out: one that comes back has not drawn all its joules since the last look.
TEST(TopRows, WhoWasLeftOutIsNotNew) {
  const auto books = [](int at, const std::string& accounts, const std::string& left_out) {
    const std::string lists = R"(,"processes":[)" + accounts + R"(],"owners":[)" + accounts + "]";
    return *parse_books(R"({"at":)" + std::to_string(at) + R"(,"cycle":)" + std::to_string(at) +
                        R"(,"gpus":[{"uuid":"G","up":true}])" + lists + left_out + "}");
  };
  const std::string account =
      R"({"pid":7,"gpu_uuid":"G","owner":"pod","owner_text":"a","active":true,"energy_joules":{"total":1000,"shared":1000},
      "energy_standard_error_joules":10})";
  const Books now = books(5, account, R"(,"left_out":{"owners":0,"processes":0})");
  for (const bool by_owners : {false, true}) {
    const View view = by_owners ? by_owner() : View();
    const Books left_out = books(4, "", R"(,"left_out":{"owners":1,"processes":1})");
    EXPECT_EQ(make_rows(now, &left_out, view).at(0).watts, 0);
    EXPECT_EQ(make_rows(now, &left_out, view).at(0).watts_error, 0);
    const Books nobody = books(4, "", "");
    EXPECT_EQ(make_rows(now, &nobody, view).at(0).watts, 1000) << "a new one starts at 0";
  }
  const Books some = books(4, "", R"(,"left_out":{"owners":2,"processes":1})");
  ASSERT_EQ(some.troubles.size(), 1u);
  EXPECT_EQ(some.troubles[0].source, "--max-series");
  EXPECT_EQ(some.troubles[0].reason, "processes left out: 1, owners: 2");
}

TEST(TopRows, FiltersByEveryName) {
  Books books = kNow;
  books.processes[0].container = "Trainer";
  EXPECT_THAT(names(books, filtered_by("trainER")), ElementsAre("p11"));
  EXPECT_THAT(names(books, filtered_by("p12")), ElementsAre("p12"));
  EXPECT_THAT(names(books, filtered_by("JOB-13")), ElementsAre("p13"));
  EXPECT_THAT(names(books, filtered_by("team/")), UnorderedElementsAre("p11", "p12", "p13"));
  EXPECT_THAT(names(books, filtered_by("nobody")), IsEmpty());
}

TEST(TopRows, OneGpu) {
  Books books = kNow;
  books.processes.push_back(process(77, 5, 1));
  EXPECT_THAT(names(books, on_gpu(1)), ElementsAre("p77"));
  EXPECT_EQ(names(books, on_gpu(0)).size(), 3u);
  EXPECT_THAT(names(books, on_gpu(5)), IsEmpty());
}

// A pod with two containers on two GPUs, one of whose processes is gone.
TEST(TopRows, AddsUpByOwner) {
  Books books;
  books.at = 100, books.cycle = 5;
  for (uint32_t on : {0u, 1u}) {
    books.gpus.push_back(gpu(on));
    Books::Process one = process(20 + on, 50, on);
    one.owner = "team/big";
    one.pod_uid = "u1";
    one.share = 0.25;
    one.idle_seconds = 10 + on;
    books.processes.push_back(one);
    Books::Account account = one;
    account.joules = 80;  // 30 of them of processes that are gone
    account.shared_joules = 20;
    account.error_joules = 2;
    static_cast<Books::Account&>(books.owners.emplace_back()) = account;
  }
  books.processes.push_back(process(31, 10));
  static_cast<Books::Account&>(books.owners.emplace_back()) = books.processes.back();
  Books before = books;
  before.at -= 2, before.cycle -= 1;
  for (Books::Account& account : before.owners) {
    account.joules -= 10;
    account.shared_joules -= 5;
  }

  std::vector<Row> rows = make_rows(books, &before, by_owner());
  ASSERT_EQ(rows.size(), 2u);
  const Row& big = rows[0];
  EXPECT_EQ(big.owner, "team/big");
  EXPECT_EQ(big.joules, 160);
  EXPECT_EQ(big.watts, 10);
  EXPECT_EQ(big.gpus, 2u);
  EXPECT_FALSE(big.gpu || big.pid || big.share);
  EXPECT_EQ(big.process, "2 processes");
  EXPECT_EQ(big.memory, 2e9);
  EXPECT_EQ(big.idle_seconds, 10);
  EXPECT_DOUBLE_EQ(big.joules_error, 4);
  EXPECT_DOUBLE_EQ(big.watts_error, 2 * (2.0 / 20) * 5 / 2) << "of both GPUs";
  EXPECT_EQ(rows[1].pid, 31);

  rows = make_rows(books, &before, by_owner(on_gpu(1)));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].joules, 80);
  EXPECT_EQ(rows[0].gpu, 1u);
  EXPECT_EQ(rows[0].share, 0.25);

  books.processes[0].idle_seconds.reset();
  EXPECT_FALSE(make_rows(books, &before, by_owner())[0].idle_seconds) << "somebody works";
  EXPECT_EQ(make_rows(books, &before, by_owner(filtered_by("p21"))).size(), 1u);
}

// The joules of a lost GPU stay as they are. That is not 0 W.
TEST(TopRows, WhatALostGpuUsesIsNotKnown) {
  Books now = kNow, before = kBefore;
  for (Books* books : {&now, &before}) {
    books->gpus.push_back(gpu(1));
    Books::Process other = process(11, books == &now ? 500 : 480, 1);
    books->processes.push_back(other);
    static_cast<Books::Account&>(books->owners.emplace_back()) = other;
  }
  const auto watts = [&](const View& view) {
    std::map<std::string, std::optional<double>> sums;
    for (const Row& row : make_rows(now, &before, view)) sums[row.owner + (row.gpu == 1 ? " on 1" : "")] = row.watts;
    return sums;
  };
  EXPECT_EQ(watts({})["team/job-11 on 1"], 20);
  EXPECT_EQ(watts(by_owner())["team/job-11"], 31);
  for (Books* lost : {&now, &before}) {  // found again since then: the joules between may be of any time
    lost->gpus[1].up = false;
    EXPECT_EQ(watts({})["team/job-11 on 1"], std::nullopt);
    EXPECT_EQ(watts({})["team/job-11"], 11);
    EXPECT_EQ(watts(by_owner())["team/job-11"], 11) << "of the GPU that answers";
    EXPECT_EQ(watts(by_owner(on_gpu(1)))["team/job-11 on 1"], std::nullopt);
    lost->gpus[1].up = true;
  }
  now.gpus[1].watts.reset();
  EXPECT_EQ(watts({})["team/job-11 on 1"], 20) << "its counter goes on";
  now.gpus[1].integrates = true;
  EXPECT_EQ(watts({})["team/job-11 on 1"], std::nullopt);
}

TEST(TopRows, BooksThatBeganAnewHaveNoWatts) {
  Books fell = kBefore;
  fell.processes[2].joules += 1e6;
  ASSERT_FALSE(make_rows(kNow, &fell, {}).empty());
  for (const Row& row : make_rows(kNow, &fell, {})) EXPECT_EQ(row.watts.has_value(), row.pid != 13);
  Books later = kBefore;
  later.cycle = kNow.cycle + 1;
  for (const Row& row : make_rows(kNow, &later, {})) EXPECT_FALSE(row.watts);
}

TEST(TopReading, KeepsTheBooksBefore) {
  using std::chrono::seconds;
  Reading reading;
  take_books(kBefore, seconds(50), reading);
  EXPECT_EQ(reading.before, nullptr);
  take_books(kBefore, seconds(51), reading);
  EXPECT_EQ(reading.before, nullptr) << "the same again";
  take_books(kNow, seconds(52), reading);
  ASSERT_NE(reading.before, nullptr);
  EXPECT_EQ(reading.before->at, kBefore.at);
  take_books(kNow, seconds(53), reading);
  ASSERT_NE(reading.before, nullptr) << "the same again changes nothing";

  Books restarted = kNow;
  restarted.cycle = 1;
  restarted.at += 10;
  take_books(restarted, seconds(60), reading);
  EXPECT_EQ(reading.before, nullptr);
  Books set_clock = restarted;
  set_clock.cycle = 2;
  set_clock.at += 3600;
  take_books(set_clock, seconds(61), reading);
  EXPECT_EQ(reading.before, nullptr) << "an hour in a second";
}

}  // namespace
}  // namespace gpuledger::app::top
