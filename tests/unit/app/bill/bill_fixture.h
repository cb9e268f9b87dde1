// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "app/bill/make_statement.h"
#include "unit/app/bill/fake_prometheus.h"

namespace gpuledger::app {

class Bill : public ::testing::Test {
 protected:
  Result<Statement> bill(int64_t hours = 3) {
    query_.span = {std::chrono::sys_seconds(std::chrono::seconds(kBegin)),
                   std::chrono::sys_seconds(std::chrono::seconds(kBegin + hours * kHour))};
    return make_statement(server_.ask(), query_, view_);
  }
  Statement good(int64_t hours = 3) {
    auto statement = bill(hours);
    EXPECT_TRUE(statement.ok()) << statement.error().message;
    if (!statement.ok()) return {};
    EXPECT_EQ(statement->sum_millijoules(), statement->meter_millijoules) << "the lines do not add up to the meter";
    return *statement;
  }
  std::string error() {
    const auto statement = bill();
    return statement.ok() ? "(no error)" : statement.error().message;
  }
  static const BillLine& line(const Statement& statement, const std::string& name) {
    for (const BillLine& one : statement.lines) {
      if (one.name == name) return one;
    }
    ADD_FAILURE() << "no line " << name;
    static const BillLine none;
    return none;
  }
  // Pod a alone spends `watts`, idle `idle_watts`, scraped every minute.
  void run(const std::string& node, int64_t from, int64_t to, double joules, double watts = 100,
           double started = -1e6) {
    for (int64_t at = from; at <= to; at += 60) {
      FakeScrape& one = server_.scrape(node, at);
      one.started = started;
      one.pod("team", "a", joules + watts * static_cast<double>(at - from)).nobody("idle", 50);
    }
  }

  FakePrometheus server_;
  BillQuery query_;
  BillView view_;
};

}  // namespace gpuledger::app
