// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "expose/expose.h"
#include "node_example.h"

namespace gpuledger::expose {
namespace {

using nlohmann::json;

json snapshot(const Cycle& cycle) {
  return json::parse(write_json(cycle, example_options()));
}

TEST(Json, SaysWhenAndWhere) {
  const json document = snapshot(node_example());
  EXPECT_EQ(document["at"], 1700000100.25);
  EXPECT_EQ(document["cycle"], 42);
  EXPECT_EQ(document["simulated"], true);
  EXPECT_EQ(document["version"], "1.2.3");
  EXPECT_FALSE(document.contains("node"));
  EXPECT_EQ(document["sources"][1],
            (json{{"source", "pod-resources"}, {"up", false}, {"needed", true}, {"reason", "no socket"}}));
}

// Jobs of other schedulers are not Slurm's.
TEST(Json, ASecondNameOfAFieldIsForItsKindOnly) {
  Cycle cycle = node_example();
  OwnerAccount account = cycle.ledger.owners.front();
  account.owner = Owner();
  account.owner.job = "7";
  cycle.ledger.owners = {account};
  EXPECT_FALSE(snapshot(cycle)["owners"][0].contains("slurm_job_id"));
  EXPECT_EQ(snapshot(cycle)["owners"][0]["job"], "7");
  cycle.ledger.owners[0].owner.kind = OwnerKind::kSlurmJob;
  EXPECT_EQ(snapshot(cycle)["owners"][0]["slurm_job_id"], "7");
}

TEST(Json, Gpus) {
  const json gpus = snapshot(node_example())["gpus"];
  ASSERT_EQ(gpus.size(), 4u);
  EXPECT_EQ(gpus[0]["model"], "NVIDIA H200");
  EXPECT_EQ(gpus[0]["energy_joules"], 6000.000123);
  EXPECT_EQ(gpus[0]["books_opened_seconds"], 1699999000.25);
  EXPECT_EQ(gpus[0]["books_run"], 3);
  EXPECT_FALSE(gpus[1].contains("books_opened_seconds")) << "not known";
  EXPECT_FALSE(gpus[1].contains("books_run"));
  EXPECT_EQ(gpus[0]["unattributed_joules"]["idle"], 1000.000001);
  EXPECT_EQ(gpus[0]["unattributed_joules"].size(), 5u);
  EXPECT_EQ(gpus[0]["power_watts"], 312.5);
  EXPECT_EQ(gpus[0]["memory_total_bytes"], 85899345920);
  EXPECT_EQ(gpus[0]["xid_errors"]["79"], 1);
  EXPECT_EQ(gpus[0]["attribution_error_ratio"], 0.0425);
  EXPECT_EQ(gpus[0]["attribution_comparisons"], 12);
  EXPECT_FALSE(gpus[1].contains("attribution_error_ratio")) << "nothing was compared";
  EXPECT_EQ(gpus[1]["attribution_comparisons"], 0);
  EXPECT_EQ(gpus[1]["mig"][0]["profile"], "1g.10gb");
  EXPECT_EQ(gpus[2]["up"], false);
  EXPECT_FALSE(gpus[2].contains("power_watts"));
  EXPECT_FALSE(gpus[2].contains("idle_power_watts"));
  EXPECT_FALSE(gpus[3].contains("temperature_celsius"));
}

TEST(Json, SaysWhetherTimeIsExactAndWhyNot) {
  const json gpus = snapshot(node_example())["gpus"];
  EXPECT_EQ(gpus[0]["exact_time"], (json{{"trusted", true},
                                         {"records", 20000},
                                         {"lost_records", 3},
                                         {"switches", 10000},
                                         {"switch_seconds", 0.85},
                                         {"unknown_seconds", 0.0}}));
  EXPECT_EQ(gpus[1]["exact_time"]["trusted"], false);
  EXPECT_EQ(gpus[1]["exact_time"]["reason"], "MIG");
  EXPECT_FALSE(gpus[3].contains("exact_time")) << "nobody asked for it";
  EXPECT_EQ(gpus[0]["gpu_seconds_source"], "trace");
  EXPECT_FALSE(gpus[1].contains("gpu_seconds_source"));
}

TEST(Json, WhatIsWrongWithAGpuIsSaidInWords) {
  Cycle cycle = node_example();
  cycle.batch.devices[0].vitals = Vitals();
  EXPECT_EQ(snapshot(cycle)["gpus"][0]["health"],
            (json{"Xid 31, 2 times, last 1m40s ago", "Xid 79, once, last 10s ago"}));
  EXPECT_FALSE(snapshot(cycle)["gpus"][1].contains("health")) << "all is well";
  EXPECT_EQ(snapshot(cycle)["gpus"][2]["health"], (json{"does not answer"}));

  Vitals& vitals = cycle.batch.devices[1].vitals;
  vitals[Vital::kRemapFailed] = 1;
  vitals[Vital::kRemapPending] = 0;
  vitals[Vital::kEccUncorrectedVolatile] = 7;
  vitals[Vital::kEccCorrectedVolatile] = 99;
  vitals[Vital::kRetiredPagesPending] = 1;
  vitals[Vital::kThrottleReasons] = kThrottleSwPowerCap | kThrottleHwSlowdown | kThrottleHwThermal;
  EXPECT_EQ(snapshot(cycle)["gpus"][1]["health"],
            (json{"a memory row could not be remapped: the GPU needs to be replaced",
                  "7 uncorrected ECC errors since the driver was loaded",
                  "memory pages wait to be retired: reset the GPU", "slowed down by heat, in hardware"}));
  vitals = Vitals();
  vitals[Vital::kThrottleReasons] = kThrottleSwPowerCap;
  EXPECT_FALSE(snapshot(cycle)["gpus"][1].contains("health")) << "at its power limit, as it should be";
  vitals[Vital::kThrottleReasons] = kThrottleHwSlowdown;
  EXPECT_EQ(snapshot(cycle)["gpus"][1]["health"], (json{"slowed down by its hardware"}));

  cycle.batch.at.wall += std::chrono::hours(24);
  EXPECT_FALSE(snapshot(cycle)["gpus"][0].contains("health")) << "Xids of yesterday";
}

TEST(Json, Processes) {
  const json processes = snapshot(node_example())["processes"];
  ASSERT_EQ(processes.size(), 5u);
  EXPECT_EQ(processes[0]["active"], false);
  EXPECT_EQ(processes[0]["gone_seconds"], 45);
  EXPECT_FALSE(processes[0].contains("sm_utilization_ratio"));
  EXPECT_FALSE(processes[0].contains("energy_standard_error_joules"));
  EXPECT_EQ(processes[1]["pid"], 100);
  EXPECT_EQ(processes[1]["pod"], "train-0");
  EXPECT_EQ(processes[1]["container_id"], "c0ffee");
  EXPECT_EQ(processes[1]["energy_joules"], (json{{"alone", 1234.567891}, {"shared", 700.0}, {"total", 1934.567891}}));
  EXPECT_EQ(processes[1]["energy_standard_error_joules"], 3.5);
  EXPECT_EQ(processes[1]["idle"], false);
  EXPECT_EQ(processes[2]["idle_seconds"], 700.0);
  EXPECT_EQ(processes[2]["owner"], "host");
  EXPECT_FALSE(processes[2].contains("pod"));
  EXPECT_FALSE(processes[3].contains("idle"));  // its GPU cannot say
}

TEST(Json, Owners) {
  Cycle cycle = node_example();
  cycle.ledger.owners[1].booked.shared = Energy();
  const json owners = snapshot(cycle)["owners"];
  ASSERT_EQ(owners.size(), 6u);
  EXPECT_EQ(owners[0]["owner"], "pod");
  EXPECT_EQ(owners[0]["energy_joules"]["total"], 3000.0);
  EXPECT_EQ(owners[0]["energy_standard_error_joules"], 0.5);
  EXPECT_EQ(owners[0]["idle_memory_bytes"], 0);
  EXPECT_EQ(owners[1]["job"], "4711");
  EXPECT_EQ(owners[1]["slurm_job_id"], "4711");
  EXPECT_EQ(owners[1]["user_name"], "ana");
  EXPECT_EQ(owners[1]["account"], "physics");
  EXPECT_EQ(owners[1]["partition"], "gpu");
  EXPECT_EQ(owners[1]["job_gpus"], 2);
  EXPECT_EQ(owners[1]["job_start_time_seconds"], 940.5);
  EXPECT_FALSE(owners[0].contains("account"));
  EXPECT_FALSE(owners[1].contains("idle_memory_bytes"));
  EXPECT_EQ(owners[3]["owner"], "host");
  EXPECT_FALSE(owners[3].contains("energy_standard_error_joules")) << "all of it is measured";
  EXPECT_EQ(owners[5]["owner"], "unknown");
}

TEST(Json, Allocations) {
  const json given = snapshot(node_example())["allocations"];
  ASSERT_GE(given.size(), 2u);
  EXPECT_EQ(given[0]["idle_seconds"], 61.5);
  EXPECT_TRUE(given[0].contains("replica"));
  EXPECT_FALSE(given[0].contains("mig_uuid"));
  EXPECT_EQ(given[given.size() - 1]["mig_uuid"], "MIG-1");
  EXPECT_EQ(given[given.size() - 1]["idle_seconds"], 0.0);
  Cycle cycle = node_example();
  cycle.ledger.allocations[0].idle_for.reset();
  EXPECT_FALSE(snapshot(cycle)["allocations"][0].contains("idle_seconds"));
}

TEST(Json, NamesThatAreNoTextDoNotThrow) {
  Cycle cycle = node_example();
  process_of(cycle, 100).identity.name = "\xff\"\n\x01";
  EXPECT_EQ(snapshot(cycle)["processes"][1]["name"], "\xEF\xBF\xBD\"\n\x01");
}

TEST(Json, EmptyCycleHasEmptyLists) {
  const json document = snapshot(Cycle{});
  for (const char* list : {"allocations", "gpus", "processes", "owners", "sources"})
    EXPECT_EQ(document[list], json::array()) << list;
}

}  // namespace
}  // namespace gpuledger::expose
