// SPDX-License-Identifier: Apache-2.0
#include "app/job/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace gpuledger::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

top::Books::OwnerSum step(const std::string& name, uint32_t gpu, double alone, double shared, double error) {
  top::Books::OwnerSum owner;
  owner.owner_kind = "slurm_job";
  owner.job = "7";
  owner.step = name;
  owner.gpu = gpu;
  owner.gpu_uuid = "GPU-" + std::to_string(gpu);
  owner.alone_joules = alone;
  owner.shared_joules = shared;
  owner.error_joules = error;
  owner.gpu_seconds = 10;
  owner.memory_peak = 1e9 * (gpu + 1);
  owner.account = "physics";
  owner.partition = "gpu";
  owner.uid = "2001";
  owner.user_name = "ana";
  owner.job_gpus = 2;
  owner.job_started = 940;
  return owner;
}

top::Books books_with(std::vector<top::Books::OwnerSum> owners) {
  top::Books books;
  books.at = 1000;
  books.node = "n1";
  books.owners = std::move(owners);
  return books;
}

top::Books example() {
  top::Books books = books_with({step("0", 0, 0.1, 100, 3), step("batch", 0, 0.2, 50, 4), step("0", 1, 3000, 0, 0)});
  top::Books::OwnerSum other = step("0", 0, 9999, 9999, 99);
  other.job = "70";
  books.owners.push_back(other);
  return books;
}

TEST(JobReport, AddsUpStepsAndGpus) {
  const auto report = report_job(example(), "7");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->whole.alone, Energy::microjoules(3000'300'000)) << "exact";
  EXPECT_EQ(report->whole.shared, Energy::microjoules(150'000'000));
  EXPECT_DOUBLE_EQ(report->whole.error_joules, 7) << "3 and 4 are on one GPU";
  EXPECT_EQ(report->whole.gpu_seconds, 30);
  EXPECT_EQ(report->whole.memory_peak, 2e9);
  EXPECT_EQ(report->gpus_used, 2u);
  EXPECT_EQ(report->steps.size(), 3u);
  EXPECT_EQ(report->steps[1].gpu, 1u) << "by step, then by GPU";
  EXPECT_TRUE(report->running);
  EXPECT_EQ(report->held_seconds, 60);
  EXPECT_DOUBLE_EQ(*report->idle_ratio(), 0.75) << "30 of 2 x 60 s";
  EXPECT_DOUBLE_EQ(*report->mean_watts(), 3150.3 / 60);
  EXPECT_FALSE(report->kwh_cost(0));
  EXPECT_DOUBLE_EQ(*report->kwh_cost(3.6), 3150.3e-6);
  EXPECT_FALSE(report_job(example(), "8"));
}

TEST(JobReport, AnEndedJobHoldsItsGpusUntilItsLastProcess) {
  top::Books books = example();
  books.owners[0].gone_seconds = 40;
  books.owners[1].gone_seconds = 30;
  EXPECT_TRUE(report_job(books, "7")->running);
  books.owners[2].gone_seconds = 35;
  const auto report = report_job(books, "7");
  EXPECT_FALSE(report->running);
  EXPECT_EQ(report->ended, 970);
  EXPECT_EQ(report->held_seconds, 30);
}

TEST(JobReport, WhatIsNotKnownIsLeftOut) {
  top::Books::OwnerSum owner = step("", 0, 5, 0, 0);
  owner.account = owner.partition = owner.user_name = owner.uid = "";
  owner.job_gpus = owner.job_started = owner.gpu_seconds = owner.memory_peak = std::nullopt;
  const auto report = report_job(books_with({owner}), "7");
  EXPECT_FALSE(report->idle_ratio());
  EXPECT_FALSE(report->mean_watts());
  const std::string text = write_job_text(*report, 0);
  for (const char* word : {"Account", "Partition", "User", "Held", "Idle share", "Mean power", "cost", "+- "}) {
    EXPECT_THAT(text.substr(0, text.find("Step")), Not(HasSubstr(word)));
  }
  EXPECT_EQ(write_job_line(*report, 0), "gpu_energy_joules=5.000\n");
  const auto json = nlohmann::json::parse(write_job_json(*report, 0));
  for (const char* field : {"account", "idle_ratio", "gpu_seconds", "energy_standard_error_joules", "held_seconds"}) {
    EXPECT_FALSE(json.contains(field)) << field;
  }
}

TEST(JobReport, ARequeuedJobHasNoShareOfIdleTime) {
  top::Books books = example();
  books.owners[0].job_restarted = true;
  EXPECT_FALSE(report_job(books, "7")->held_seconds);
  books = example();
  books.owners[1].job_started = 950;
  EXPECT_FALSE(report_job(books, "7")->idle_ratio());
}

TEST(JobReport, SaysThatEarlierStepsAreMissing) {
  top::Books books = example();
  EXPECT_THAT(write_job_text(*report_job(books, "7"), 0), Not(HasSubstr("INCOMPLETE")));
  books.owners[1].job_steps_closed = true;
  const auto report = report_job(books, "7");
  EXPECT_THAT(write_job_text(*report, 0), HasSubstr("INCOMPLETE       the exporter has closed"));
  EXPECT_THAT(write_job_line(*report, 0), HasSubstr(" steps_closed=1"));
  EXPECT_EQ(nlohmann::json::parse(write_job_json(*report, 0))["job_steps_closed"], true);
  EXPECT_FALSE(report->idle_ratio());
  EXPECT_FALSE(report->mean_watts());
}

TEST(JobReport, UsedGpusThatThePrologDidNotName) {
  top::Books books = example();
  for (auto& owner : books.owners) owner.job_gpus = 1;
  EXPECT_FALSE(report_job(books, "7")->idle_ratio());
}

TEST(JobReport, StepsOfDifferentUsers) {
  top::Books books = example();
  books.owners[1].uid = "0";
  const auto report = report_job(books, "7");
  EXPECT_EQ(report->uid, "");
  EXPECT_EQ(report->user_name, "");
}

TEST(JobReport, Forms) {
  const auto report = report_job(example(), "7");
  const std::string text = write_job_text(*report, 0.25);
  for (const char* part : {"Slurm job 7 on n1", "physics", "ana (uid 2001)", "runs", "30s on 2 GPUs", "75.0 %",
                           "52.5 W", "at 0.25 per kWh", "batch"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_EQ(write_job_line(*report, 0),
            "gpu_energy_joules=3150.300 gpu_energy_error_joules=7.000 gpu_seconds=30.000 "
            "gpu_memory_peak_bytes=2000000000 idle_ratio=0.750\n");
  const std::string line = write_job_json(*report, 0.25);
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line";
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["slurm_job_id"], "7");
  EXPECT_EQ(json["energy_joules"]["total"], 3150.3);
  EXPECT_EQ(json["account"], "physics");
  EXPECT_EQ(json["steps"].size(), 3u);
  EXPECT_THAT(line, HasSubstr("\"total\":3150.3")) << "no rounding errors";
}

// As an exporter that is another program, or broken, may say.
TEST(JobReport, NumbersThatCannotBe) {
  for (const std::string wrong : {"-1", "1e300", "-1e300", "9007199254740992", "18446744073709551616"}) {
    const auto books = top::parse_books(R"({"at":1000,"gpus":[],"processes":[],"owners":[{"slurm_job_id":"7","gpu":0,
        "memory_peak_bytes":)" + wrong + R"(,"job_gpus":)" +
                                        wrong + R"(,"energy_joules":{"alone":)" + wrong + R"(,"shared":2}}]})");
    ASSERT_TRUE(books.ok()) << wrong;
    const auto json = nlohmann::json::parse(write_job_json(*report_job(*books, "7"), 0));
    EXPECT_FALSE(json.contains("memory_peak_bytes")) << json;
    EXPECT_FALSE(json.contains("job_gpus")) << json;
    EXPECT_EQ(json["energy_joules"]["total"], 2) << wrong;
  }
}

TEST(JobReport, SumsThatCannotBe) {
  std::string owners;
  for (int i = 0; i < 12; ++i) {
    owners += (i == 0 ? "" : ",") + std::string(R"({"slurm_job_id":"7","gpu":0,"job_gpus":1,"gpu_seconds":1.7e308,
        "job_start_time_seconds":-1.7e308,"energy_joules":{"alone":9e11,"shared":9e11}})");
  }
  const auto books = top::parse_books(R"({"at":1000,"gpus":[],"processes":[],"owners":[)" + owners + "]}");
  ASSERT_TRUE(books.ok());
  const auto report = report_job(*books, "7");
  EXPECT_GT(report->whole.alone, Energy::microjoules(1));
  EXPECT_GT(report->whole.total(), report->whole.alone);
  EXPECT_THAT(write_job_line(*report, 0), Not(HasSubstr("nan")));
  EXPECT_THAT(write_job_line(*report, 0), Not(HasSubstr("inf")));
}

TEST(JobReport, NamesCannotChangeTheScreen) {
  const std::string wrong = "a\x1b[2J\nb";
  top::Books books = example();
  books.node = wrong;
  for (auto& owner : books.owners) {
    owner.account = owner.partition = owner.user_name = owner.uid = owner.step = wrong;
  }
  const std::string text = write_job_text(*report_job(books, "7"), 0);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find("\nb"), std::string::npos);
  for (auto& owner : books.owners) owner.user_name = "";
  EXPECT_EQ(write_job_text(*report_job(books, "7"), 0).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace gpuledger::app
