// SPDX-License-Identifier: Apache-2.0
#include "app/bill/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/app/bill/bill_fixture.h"

namespace gpuledger::app {
namespace {

using Labels = std::map<std::string, std::string>;

// An exporter shows what a pod or job is only while that has a process; its energy stays for a day.
class Facts : public Bill {
 protected:
  Facts() {
    for (int64_t at = 0; at <= 2 * kHour; at += 60) {
      FakeScrape& one = server_.scrape("n", at);
      const bool begun = at >= 300, runs = begun && at <= 3300;
      one.nobody("idle", 10.0 * static_cast<double>(at));
      if (!begun) continue;
      const double joules = 100.0 * static_cast<double>(std::min<int64_t>(at, 3300) - 300);
      one.pod("web", "short", joules);
      one.energy("gpu_ledger_slurm_job_energy_joules_total", {{"slurm_job_id", "7"}}, "0", joules, false);
      if (!runs) continue;
      one.add("gpu_ledger_pod_info",
              {{"namespace", "web"}, {"pod", "short"}, {"pod_uid", "short-uid"}, {"label_team", "ml"}}, 1);
      one.add("gpu_ledger_slurm_job_info", {{"slurm_job_id", "7"}, {"account", "physics"}, {"user_name", "ana"}}, 1);
    }
  }
};

TEST_F(Facts, APodThatLivesBetweenTwoInstantsHasItsTeam) {
  view_.by = {"label:team"};
  EXPECT_EQ(line(good(2), "ml").own_millijoules(), 300'000'000);
}

TEST_F(Facts, AJobThatLivesBetweenTwoInstantsHasItsAccount) {
  view_.by = {"slurm_account"};
  EXPECT_EQ(line(good(2), "physics").own_millijoules(), 300'000'000);
}

TEST_F(Facts, OfAPodThatHasChangedItsTeamTheLastOneCounts) {
  for (FakeScrape& one : server_.scrapes) {
    for (auto& [labels, value] : one.series) {
      if (labels.contains("label_team") && one.at > 2000) labels["label_team"] = "vision";
    }
    if (one.at <= 3300) continue;  // and it goes on
    one.add("gpu_ledger_pod_info",
            {{"namespace", "web"}, {"pod", "short"}, {"pod_uid", "short-uid"}, {"label_team", "vision"}}, 1);
  }
  view_.by = {"label:team"};
  EXPECT_EQ(line(good(2), "vision").own_millijoules(), 300'000'000);
}

// Without a uid a name's labels count, and the name is used again within a step.
TEST_F(Facts, AnAllocationWithoutAUidBelongsToTheNewestPodOfItsName) {
  for (FakeScrape& one : server_.scrapes) {
    if (one.at < kHour + 600 || one.at > kHour + 1800) continue;
    one.add("gpu_ledger_pod_info", {{"namespace", "web"}, {"pod", "short"}, {"pod_uid", "later"}, {"label_team", "z"}},
            1);
  }
  const Labels held = {{"node", "n"}, {"uuid", "GPU-n-0"}, {"namespace", "web"}, {"pod", "short"}};
  server_.holdings = {{held, 300, 3300}, {held, kHour + 600, kHour + 1800}};
  view_.by = {"label:team"};
  const Statement statement = good(2);
  EXPECT_NEAR(line(statement, "ml").allocated_gpu_hours.value_or(0), 0.85, 0.02);
  EXPECT_NEAR(line(statement, "z").allocated_gpu_hours.value_or(0), 0.35, 0.02);
}

// Two clusters that a server does not tell apart number their jobs alike.
TEST_F(Facts, AJobBelongsToItsNode) {
  for (int64_t at = 0; at <= 2 * kHour; at += 60) {
    FakeScrape& one = server_.scrape("far", at);
    one.energy("gpu_ledger_slurm_job_energy_joules_total", {{"slurm_job_id", "7"}}, "0", static_cast<double>(at),
               false);
    one.add("gpu_ledger_slurm_job_info", {{"slurm_job_id", "7"}, {"account", "film"}, {"user_name", "bo"}}, 1);
  }
  view_.by = {"slurm_account"};
  EXPECT_EQ(line(good(2), "physics").own_millijoules(), 300'000'000);
  EXPECT_EQ(line(good(2), "film").own_millijoules(), 2 * kHour * 1000);
  view_.by = {"user"};
  EXPECT_EQ(line(good(2), "bo").own_millijoules(), 2 * kHour * 1000);
}

}  // namespace
}  // namespace gpuledger::app
