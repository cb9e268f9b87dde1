// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "expose/expose.h"
#include "exposition_parser.h"
#include "node_example.h"

namespace gpuledger::expose {
namespace {

using std::chrono::seconds;

TEST(ProcessCollector, EnergyIsTwoSeries) {
  const Exposition out = expose(node_example());
  const std::string name = "my_gpu_process_energy_joules_total";
  EXPECT_EQ(out.value(name, {{"pid", "100"}, {"energy_estimated", "false"}}), Shown("1234.567891"));
  EXPECT_EQ(out.value(name, {{"pid", "100"}, {"energy_estimated", "true"}}), Shown("700"));
  EXPECT_EQ(out.value(name, {{"pid", "200"}, {"energy_estimated", "true"}}), Shown("1500.0001"));
  EXPECT_EQ(out.value(name, {{"pid", "200"}, {"energy_estimated", "false"}}), Shown("0"));
  EXPECT_EQ(out.families.at(name).type, "counter");
}

TEST(ProcessCollector, NewProcessHasBothSeriesAtZero) {
  Cycle cycle = node_example();
  process_of(cycle, 100).booked = {};
  const Exposition out = expose(cycle);
  const auto found = out.find("my_gpu_process_energy_joules_total", {{"pid", "100"}});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0]->value, "0");
  EXPECT_EQ(found[1]->value, "0");
}

TEST(ProcessCollector, LabelsOfAPodProcess) {
  const Exposition out = expose(node_example());
  const auto found = out.find("my_gpu_process_active", {{"pid", "100"}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]->labels, (Labels{{"pid", "100"},
                                      {"gpu", "0"},
                                      {"process_name", "python3"},
                                      {"pod", "train-0"},
                                      {"namespace", "ml"},
                                      {"container", "pytorch"},
                                      {"pod_uid", "0b6f1c52-91ab-4c2c-8a0f-0d5a4d6a1f10"},
                                      {"container_id", "c0ffee"}}));
  const auto host = out.find("my_gpu_process_active", {{"pid", "200"}});
  ASSERT_EQ(host.size(), 1u);
  EXPECT_EQ(host[0]->labels, (Labels{{"pid", "200"}, {"gpu", "0"}, {"process_name", "notebook"}}));
}

TEST(ProcessCollector, MigProcessNamesItsSlice) {
  const Exposition out = expose(node_example());
  const auto found = out.find("my_gpu_process_memory_used_bytes", {{"pid", "300"}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]->labels.at("mig_uuid"), "MIG-0001");
  EXPECT_EQ(found[0]->labels.at("mig_profile"), "1g.10gb");
  // This GPU cannot say who works.
  EXPECT_TRUE(out.find("my_gpu_process_sm_utilization_ratio", {{"pid", "300"}}).empty());
}

TEST(ProcessCollector, GaugesOfALivingProcess) {
  const Exposition out = expose(node_example());
  const Labels trainer{{"pid", "100"}};
  EXPECT_EQ(out.value("my_gpu_process_sm_utilization_ratio", trainer), Shown("0.85"));
  EXPECT_EQ(out.value("my_gpu_process_memory_utilization_ratio", trainer), Shown("0.07"));
  EXPECT_EQ(out.value("my_gpu_process_memory_used_bytes", trainer), Shown("2147483648"));
  EXPECT_EQ(out.value("my_gpu_process_start_time_seconds", trainer), Shown("1700000000.25"));
  EXPECT_EQ(out.value("my_gpu_process_active", trainer), Shown("1"));
  EXPECT_EQ(out.value("my_gpu_process_gpu_seconds_total", trainer), Shown("12.345"));
  EXPECT_EQ(out.value("my_gpu_process_energy_standard_error_joules", trainer), Shown("3.5"));
}

TEST(ProcessCollector, ExitedProcessKeepsItsCountersOnly) {
  Cycle cycle = node_example();
  process_of(cycle, 90).sm = Ratio{0.5};  // a careless stage before must not bring gauges back
  process_of(cycle, 90).memory = Bytes{kGiB};
  const Exposition out = expose(cycle);
  const Labels exited{{"pid", "90"}};
  EXPECT_EQ(out.value("my_gpu_process_active", exited), Shown("0"));
  EXPECT_EQ(out.micro_sum("my_gpu_process_energy_joules_total", exited), 65'432'109);
  EXPECT_EQ(out.value("my_gpu_process_gpu_seconds_total", exited), Shown("1"));
  for (const char* name : {"my_gpu_process_sm_utilization_ratio", "my_gpu_process_memory_utilization_ratio",
                           "my_gpu_process_memory_used_bytes", "my_gpu_process_energy_standard_error_joules"}) {
    EXPECT_TRUE(out.find(name, exited).empty()) << name;
  }
}

TEST(ProcessCollector, SwitchesBelongToTheLastProcessOfAPid) {
  Cycle cycle = node_example();
  ProcessAccount& former = process_of(cycle, 90);
  former.identity.key = {100, 5};  // an older process with the trainer's pid
  former.identity.name = "before";
  const Exposition out = expose(cycle);
  const auto found = out.find("my_gpu_process_switches_total", {{"pid", "100"}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]->labels.at("process_name"), "python3");
  EXPECT_EQ(found[0]->value, "6000");
}

TEST(ProcessCollector, ReusedPidWithEqualLabelsAddsUp) {
  Cycle cycle = node_example();
  ProcessAccount second = process_of(cycle, 90);
  second.identity.key.start_ticks = 5000;
  second.identity.start_time_seconds = 1700000050;
  second.active = true;
  second.gone_for.reset();
  second.booked = {Energy::microjoules(1), Energy::millijoules(4000), seconds(2)};
  second.standard_error_joules = 4;
  second.sm = Ratio{0.5};
  second.memory = Bytes{kGiB};
  process_of(cycle, 90).booked.shared = Energy::millijoules(3000);
  process_of(cycle, 90).standard_error_joules = 3;
  cycle.ledger.processes.insert(cycle.ledger.processes.begin() + 1, second);
  const Exposition out = expose(cycle);  // the parser refuses a series that comes twice
  const Labels both{{"pid", "90"}};
  EXPECT_EQ(out.value("my_gpu_process_energy_joules_total", {{"pid", "90"}, {"energy_estimated", "false"}}),
            Shown("65.43211"));
  EXPECT_EQ(out.value("my_gpu_process_energy_joules_total", {{"pid", "90"}, {"energy_estimated", "true"}}), Shown("7"));
  EXPECT_EQ(out.value("my_gpu_process_gpu_seconds_total", both), Shown("3"));
  EXPECT_EQ(out.value("my_gpu_process_energy_standard_error_joules", both), Shown("5"));
  EXPECT_EQ(out.value("my_gpu_process_active", both), Shown("1"));
  EXPECT_EQ(out.value("my_gpu_process_start_time_seconds", both), Shown("1700000050"));
  EXPECT_EQ(out.value("my_gpu_process_sm_utilization_ratio", both), Shown("0.5"));
  EXPECT_EQ(out.value("my_gpu_process_memory_used_bytes", both), Shown("1073741824"));
}

TEST(ProcessCollector, TheLivingWinsWhateverTheOrder) {
  Cycle cycle = node_example();
  ProcessAccount gone = process_of(cycle, 100);
  gone.identity.key.start_ticks = 99999;
  gone.active = false;
  gone.identity.start_time_seconds = 1;
  cycle.ledger.processes.push_back(gone);
  const Exposition out = expose(cycle);
  EXPECT_EQ(out.value("my_gpu_process_active", {{"pid", "100"}}), Shown("1"));
  EXPECT_EQ(out.value("my_gpu_process_start_time_seconds", {{"pid", "100"}}), Shown("1700000000.25"));
}

TEST(IdleCollector, HolderAndWorker) {
  const Exposition out = expose(node_example());
  const Labels holder{{"gpu", "0"}, {"pid", "200"}, {"process", "notebook"}};
  const Labels worker{{"gpu", "0"},       {"pid", "100"},      {"process", "python3"},
                      {"pod", "train-0"}, {"namespace", "ml"}, {"container", "pytorch"}};
  EXPECT_EQ(out.value("gpu_idle_process_idle_seconds", holder), Shown("700"));
  EXPECT_EQ(out.value("gpu_idle_process_idle_memory_bytes", holder), Shown(std::to_string(20 * kGiB)));
  EXPECT_EQ(out.value("gpu_idle_process_memory_used_bytes", holder), Shown(std::to_string(20 * kGiB)));
  EXPECT_EQ(out.value("gpu_idle_process_compute_utilization_percent", holder), Shown("0"));
  EXPECT_EQ(out.value("gpu_idle_process_idle_seconds", worker), Shown("0"));
  EXPECT_EQ(out.value("gpu_idle_process_idle_memory_bytes", worker), Shown("0"));
  EXPECT_EQ(out.value("gpu_idle_process_compute_utilization_percent", worker), Shown("85"));
}

TEST(IdleCollector, NobodyIsIdleWhereTheGpuCannotSay) {
  const Exposition out = expose(node_example());
  EXPECT_EQ(out.value("gpu_idle_process_memory_used_bytes", {{"pid", "300"}}), Shown(std::to_string(5 * kGiB)));
  EXPECT_TRUE(out.find("gpu_idle_process_idle_seconds", {{"pid", "300"}}).empty());
  EXPECT_TRUE(out.find("gpu_idle_process_idle_memory_bytes", {{"pid", "300"}}).empty());
  EXPECT_TRUE(out.find("gpu_idle_memory_total_bytes", {{"gpu", "1"}}).empty());
  EXPECT_EQ(out.value("gpu_idle_memory_total_bytes", {{"gpu", "0"}}), Shown(std::to_string(20 * kGiB)));
  EXPECT_EQ(out.value("gpu_idle_memory_total_bytes", {{"gpu", "3"}}), Shown("0"));
}

TEST(IdleCollector, GoneForThirtySecondsIsForgotten) {
  Cycle cycle = node_example();
  ProcessAccount& exited = process_of(cycle, 90);
  exited.idle = {true, false, seconds(0), 0};
  EXPECT_EQ(expose(cycle).value("gpu_idle_process_idle_seconds", {{"pid", "90"}}), std::nullopt);
  exited.gone_for = seconds(30);
  EXPECT_EQ(expose(cycle).value("gpu_idle_process_idle_seconds", {{"pid", "90"}}), std::nullopt);
  exited.gone_for = seconds(29);
  const Exposition out = expose(cycle);
  for (const char* name : {"compute_utilization_percent", "memory_used_bytes", "idle_seconds", "idle_memory_bytes"}) {
    EXPECT_EQ(out.value("gpu_idle_process_" + std::string(name), {{"pid", "90"}}), Shown("0"))
        << name << ": it holds nothing and does nothing any more";
  }
  EXPECT_EQ(out.value("gpu_idle_memory_total_bytes", {{"gpu", "0"}}), Shown(std::to_string(20 * kGiB)));
}

TEST(IdleCollector, StaysForThirtySecondsAlsoWhereNobodyKnewWhetherItWasIdle) {
  Cycle cycle = node_example();
  ProcessAccount& exited = process_of(cycle, 90);
  exited.idle = {};
  exited.gone_for = seconds(29);
  exited.memory_peak = Bytes{kGiB};
  const Exposition out = expose(cycle);
  EXPECT_EQ(out.value("gpu_idle_process_memory_used_bytes", {{"pid", "90"}}), Shown("0"));
  for (const char* name : {"compute_utilization_percent", "idle_seconds", "idle_memory_bytes"}) {
    EXPECT_TRUE(out.find("gpu_idle_process_" + std::string(name), {{"pid", "90"}}).empty()) << name;
  }
  exited.memory_peak.reset();  // the driver never told it
  EXPECT_EQ(expose(cycle).value("gpu_idle_process_memory_used_bytes", {{"pid", "90"}}), std::nullopt);
}

TEST(IdleCollector, Devices) {
  const Exposition out = expose(node_example());
  const Labels h200{{"gpu", "0"}, {"model", "NVIDIA H200"}, {"uuid", "GPU-0000"}};
  EXPECT_EQ(out.value("gpu_idle_device_utilization_percent", h200), Shown("93"));
  EXPECT_EQ(out.value("gpu_idle_device_memory_used_bytes", h200), Shown(std::to_string(40 * kGiB)));
  EXPECT_EQ(out.value("gpu_idle_device_memory_total_bytes", h200), Shown(std::to_string(80 * kGiB)));
  EXPECT_EQ(out.value("gpu_idle_device_power_watts", h200), Shown("312.5"));
  EXPECT_EQ(out.value("gpu_idle_device_temperature_celsius", h200), Shown("61"));
  EXPECT_TRUE(out.find("gpu_idle_device_temperature_celsius", {{"gpu", "3"}}).empty());
  EXPECT_TRUE(out.find("gpu_idle_device_memory_total_bytes", {{"gpu", "2"}}).empty());
}

TEST(ProcessList, CountsRunningProcesses) {
  const Exposition out = expose(node_example());
  EXPECT_EQ(out.value("gpu_process_count", {{"gpu", "0"}}), Shown("2"));
  EXPECT_EQ(out.value("gpu_process_count", {{"gpu", "1"}}), Shown("1"));
  EXPECT_TRUE(out.find("gpu_process_count", {{"gpu", "2"}}).empty());  // lost: nobody knows
  EXPECT_EQ(out.value("gpu_process_count", {{"gpu", "3"}}), Shown("0"));
  EXPECT_EQ(out.value("gpu_total_processes"), Shown("3"));
  EXPECT_EQ(out.find("gpu_process_info").size(), 3u);
}

TEST(ProcessList, InfoCarriesTheOlderLabels) {
  const Exposition out = expose(node_example());
  const auto found = out.find("gpu_process_info", {{"pid", "gpu0_100"}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]->value, "1");
  EXPECT_EQ(found[0]->labels, (Labels{{"gpu", "0"},
                                      {"pid", "gpu0_100"},
                                      {"command", "python3"},
                                      {"pod", "train-0"},
                                      {"namespace", "ml"},
                                      {"container", "pytorch"},
                                      {"status", "active"},
                                      {"gpu_memory", "2048MiB"}}));
  EXPECT_EQ(out.find("gpu_process_info", {{"pid", "gpu0_200"}, {"status", "idle"}}).size(), 1u);
}

TEST(ProcessList, StatusIsUnknownWhereNobodyCanSay) {
  Cycle cycle = node_example();
  process_of(cycle, 100).idle = {};
  process_of(cycle, 200).idle = {};
  process_of(cycle, 200).sm = Ratio{0};
  const Exposition out = expose(cycle);
  EXPECT_EQ(out.find("gpu_process_info", {{"pid", "gpu0_100"}, {"status", "active"}}).size(), 1u) << "seen to work";
  EXPECT_EQ(out.find("gpu_process_info", {{"pid", "gpu0_200"}, {"status", "unknown"}}).size(), 1u);
  EXPECT_TRUE(out.find("gpu_idle_memory_total_bytes", {{"gpu", "0"}}).empty()) << "0 where nothing is known";
}

TEST(ProcessList, UtilizationInPercent) {
  Cycle cycle = node_example();
  process_of(cycle, 100).sm = Ratio{0.07};
  const Exposition out = expose(cycle);
  const auto found = out.find("gpu_process_utilization", {{"pid", "gpu0_100"}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]->value, "7");
  EXPECT_EQ(
      found[0]->labels,
      (Labels{{"gpu", "0"}, {"pid", "gpu0_100"}, {"command", "python3"}, {"pod", "train-0"}, {"namespace", "ml"}}));
  EXPECT_EQ(out.value("gpu_process_memory_utilization", {{"pid", "gpu0_200"}}), Shown("25"));
}

TEST(ProcessList, MigSharesAreOfTheSlice) {
  Cycle cycle = node_example();
  const Labels slice{{"pid", "gpu1_300"}, {"gi_id", "7"}, {"ci_id", "0"}};
  EXPECT_EQ(expose(cycle).value("gpu_process_memory_utilization", slice), Shown("50"));
  process_of(cycle, 300).mig->memory_total.reset();
  EXPECT_EQ(expose(cycle).value("gpu_process_memory_utilization", slice), Shown("6.25"));
}

TEST(ProcessList, UnknownMemoryIsAbsent) {
  Cycle cycle = node_example();
  process_of(cycle, 100).memory.reset();
  const Exposition out = expose(cycle);
  ASSERT_EQ(out.find("gpu_process_info", {{"pid", "gpu0_100"}}).size(), 1u);
  EXPECT_FALSE(out.find("gpu_process_info", {{"pid", "gpu0_100"}})[0]->labels.contains("gpu_memory"));
  EXPECT_TRUE(out.find("gpu_process_memory_utilization", {{"pid", "gpu0_100"}}).empty());
  EXPECT_TRUE(out.find("my_gpu_process_memory_used_bytes", {{"pid", "100"}}).empty());
}

}  // namespace
}  // namespace gpuledger::expose
