// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "expose/expose.h"
#include "exposition_parser.h"
#include "node_example.h"

// Users, peaks, limits, links, MIG instances, requests; and the presets' series per process.
namespace gpuledger::expose {
namespace {

ExposeOptions lean() {
  ExposeOptions options = example_options();
  options.collectors = {"process-native", "process-info", "device", "pod", "self"};
  return options;
}

TEST(ProcessInfo, SaysWhoseProcessItIs) {
  const Exposition out = expose(node_example());
  const auto trainer = out.find("gpu_ledger_process_info", {{"pid", "100"}});
  ASSERT_EQ(trainer.size(), 1u);
  EXPECT_EQ(trainer[0]->labels.at("uid"), "1000");
  EXPECT_EQ(trainer[0]->labels.at("user_name"), "ana");
  EXPECT_EQ(trainer[0]->labels.at("type"), "compute");
  EXPECT_EQ(trainer[0]->labels.at("owner"), "pod");
  const auto holder = out.find("gpu_ledger_process_info", {{"pid", "200"}, {"uid", "1001"}, {"type", "both"}});
  ASSERT_EQ(holder.size(), 1u);
  EXPECT_FALSE(holder[0]->labels.contains("user_name")) << "not in passwd: not known";
  const auto service = out.find("gpu_ledger_process_info", {{"pid", "300"}, {"unit", "triton.service"}});
  ASSERT_EQ(service.size(), 1u);
  EXPECT_FALSE(service[0]->labels.contains("uid"));
  EXPECT_FALSE(service[0]->labels.contains("type"));
}

TEST(ProcessInfo, ASlurmJobIsNamedByItsNewLabelOnly) {
  Cycle cycle = node_example();
  Owner& owner = process_of(cycle, 200).identity.owner;
  owner.kind = OwnerKind::kSlurmJob;
  owner.job = "77";
  owner.step = "batch";
  const Exposition out = expose(cycle);
  const auto found = out.find("gpu_ledger_process_info", {{"slurm_job_id", "77"}, {"step", "batch"}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0]->labels.contains("job"));
}

TEST(ProcessInfo, PeakStaysAfterExitAndVideoIsAbsentUntilUsed) {
  const Exposition out = expose(node_example());
  EXPECT_EQ(out.value("gpu_ledger_process_memory_peak_bytes", {{"pid", "100"}}), Shown("3221225472"));
  EXPECT_EQ(out.value("gpu_ledger_process_memory_peak_bytes", {{"pid", "90"}}), Shown("3221225472"));
  EXPECT_TRUE(out.find("gpu_ledger_process_memory_peak_bytes", {{"pid", "300"}}).empty());
  EXPECT_EQ(out.value("gpu_ledger_process_encoder_utilization_ratio"), Shown("0.25"));
  EXPECT_FALSE(out.has("gpu_ledger_process_decoder_utilization_ratio"));
  Cycle cycle = node_example();
  process_of(cycle, 200).decoder = Ratio{0.4};
  const Exposition decoding = expose(cycle);
  EXPECT_EQ(decoding.value("gpu_ledger_process_decoder_utilization_ratio", {{"pid", "200"}}), Shown("0.4"));
  EXPECT_EQ(decoding.find("gpu_ledger_process_decoder_utilization_ratio").size(), 1u);
}

TEST(ProcessInfo, OlderSeriesHaveNoNewLabels) {
  size_t older = 0;
  for (const ParsedSample& sample : expose(node_example()).samples) {
    if (!sample.name.starts_with("my_gpu_process") && !sample.name.starts_with("gpu_idle") &&
        !sample.name.starts_with("gpu_process")) {
      continue;
    }
    ++older;
    for (const char* label : {"uid", "user_name", "type", "owner", "slurm_job_id"}) {
      EXPECT_FALSE(sample.labels.contains(label)) << sample.name << " " << label;
    }
  }
  EXPECT_GT(older, 30u);
}

TEST(OwnerInfo, UserOfASlurmJobAndPeaks) {
  const Exposition out = expose(node_example());
  const auto job = out.find("gpu_ledger_slurm_job_info");
  ASSERT_EQ(job.size(), 1u);
  EXPECT_EQ(job[0]->labels, (Labels{{"slurm_job_id", "4711"},
                                    {"job", "4711"},
                                    {"step", "0"},
                                    {"gpu", "1"},
                                    {"uid", "2001"},
                                    {"user_name", "ana"},
                                    {"account", "physics"},
                                    {"partition", "gpu"}}));
  EXPECT_EQ(out.value("gpu_ledger_slurm_job_memory_peak_bytes"), Shown("4294967296"));
  EXPECT_FALSE(out.has("gpu_ledger_pod_memory_peak_bytes")) << "never reported";
  Cycle unknown = node_example();
  for (OwnerAccount& owner : unknown.ledger.owners) owner.uid = owner.user_name = Name();
  const Exposition differ = expose(unknown);
  EXPECT_EQ(differ.find("gpu_ledger_slurm_job_info", {{"account", "physics"}}).size(), 1u)
      << "users differ, the account is known";
  for (OwnerAccount& owner : unknown.ledger.owners) owner.job = {};
  EXPECT_FALSE(expose(unknown).has("gpu_ledger_slurm_job_info"));
}

TEST(DeviceMetrics, LimitLinkStateAndNumbers) {
  const Exposition out = expose(node_example());
  const Labels h200{{"gpu", "0"}};
  EXPECT_EQ(out.value("gpu_ledger_device_power_limit_watts", h200), Shown("700"));
  EXPECT_TRUE(out.find("gpu_ledger_device_power_limit_watts", {{"gpu", "2"}}).empty()) << "lost";
  EXPECT_EQ(out.find("gpu_ledger_device_info", {{"serial", "1653020"}, {"vbios_version", "96.00.A5.00.00"}}).size(),
            1u);
  for (const char* name : {"gpu_ledger_performance_state", "gpu_ledger_pcie_link_generation",
                           "gpu_ledger_pcie_link_width", "gpu_ledger_encoder_utilization_ratio"}) {
    EXPECT_EQ(out.find(name, h200).size(), 1u) << name;
    EXPECT_TRUE(out.find(name, {{"gpu", "3"}}).empty()) << name << ": not read there";
  }
  EXPECT_EQ(out.value("gpu_ledger_device_memory_used_bytes", h200), Shown("42949672960"));
  EXPECT_EQ(out.value("gpu_ledger_device_utilization_ratio", h200), Shown("0.93"));
  Cycle nameless = node_example();
  auto description = std::make_shared<DeviceDescription>(*nameless.ledger.devices[0].description);
  description->serial.clear();
  description->power_limit.reset();
  nameless.ledger.devices[0].description = description;
  const Exposition without = expose(nameless);
  EXPECT_FALSE(without.find("gpu_ledger_device_info", h200)[0]->labels.contains("serial"));
  EXPECT_TRUE(without.find("gpu_ledger_device_power_limit_watts", h200).empty());
}

TEST(DeviceMetrics, MigInstances) {
  const Exposition out = expose(node_example());
  const auto info = out.find("gpu_ledger_mig_instance_info");
  ASSERT_EQ(info.size(), 1u);
  EXPECT_EQ(info[0]->labels, (Labels{{"gpu", "1"},
                                     {"uuid", "GPU-0001"},
                                     {"mig_uuid", "MIG-0001"},
                                     {"mig_profile", "1g.10gb"},
                                     {"gi_id", "7"},
                                     {"ci_id", "0"},
                                     {"compute_slices", "1"}}));
  EXPECT_EQ(out.value("gpu_ledger_mig_instance_memory_total_bytes"), Shown("10737418240"));
  EXPECT_FALSE(out.has("gpu_ledger_mig_instance_memory_used_bytes")) << "not reported";
}

TEST(DeviceMetrics, WorkOfMigInstances) {
  Cycle cycle = node_example();
  const std::string names[] = {"gpu_ledger_mig_instance_utilization_ratio", "gpu_ledger_mig_instance_sm_active_ratio"};
  for (const std::string& name : names) EXPECT_FALSE(expose(cycle).has(name)) << name << ": before Hopper not known";
  Activity& activity = cycle.batch.devices[1].instance_activity[7];
  activity.graphics = Ratio{0.75};
  cycle.batch.devices[1].instance_activity[9].graphics = Ratio{1};  // an instance that is gone
  Exposition out = expose(cycle);
  EXPECT_EQ(out.value(names[0], {{"gpu", "1"}, {"mig_uuid", "MIG-0001"}, {"gi_id", "7"}}), Shown("0.75"));
  EXPECT_EQ(out.find(names[0]).size(), 1u);
  EXPECT_FALSE(out.has(names[1])) << "this one the driver does not say";
  activity.parts[Activity::kSm] = Ratio{0.5};
  out = expose(cycle);
  EXPECT_EQ(out.value(names[1], {{"mig_profile", "1g.10gb"}}), Shown("0.5"));
  cycle.ledger.devices[1].up = cycle.batch.devices[1].up = false;
  for (const std::string& name : names) EXPECT_FALSE(expose(cycle).has(name)) << name << ": lost";
}

TEST(DeviceMetrics, RequestsBesideTheAllocation) {
  const Exposition out = expose(node_example());
  const Labels shared{
      {"namespace", "ml"}, {"pod", "train-0"}, {"container", "pytorch"}, {"resource", "nvidia.com/gpu.shared"}};
  EXPECT_EQ(out.value("gpu_ledger_container_requested_devices", shared), Shown("2"));
  // Two replicas of one GPU, and an instance that has the same resource in the example.
  EXPECT_EQ(out.value("gpu_ledger_container_allocated_devices", shared), Shown("3"));
  EXPECT_EQ(out.find("gpu_ledger_container_allocated_devices")[0]->labels, shared);
}

TEST(Sources, OneThatNobodyNeedsIsNotDown) {
  Cycle cycle = node_example();
  cycle.sources.push_back({.source = "docker", .up = false, .reason = "no permission", .errors = {{"permission", 3}}});
  EXPECT_EQ(expose(cycle).value("gpu_ledger_source_up", {{"source", "docker"}}), Shown("0"));
  cycle.sources.back().needed = false;
  const Exposition out = expose(cycle);
  EXPECT_TRUE(out.find("gpu_ledger_source_up", {{"source", "docker"}}).empty());
  EXPECT_TRUE(out.find("gpu_ledger_source_errors_total", {{"source", "docker"}}).empty());
  cycle.sources.back().up = true;
  EXPECT_EQ(expose(cycle).value("gpu_ledger_source_up", {{"source", "docker"}}), Shown("1"));
  EXPECT_EQ(expose(cycle).value("gpu_ledger_source_errors_total", {{"source", "docker"}}), Shown("3"));
}

TEST(Push, ShowsWhatWentAndWhatWaits) {
  Cycle cycle = node_example();
  const Exposition out = expose(cycle);
  EXPECT_EQ(out.value("gpu_ledger_push_samples_sent_total"), "5000");
  EXPECT_EQ(out.value("gpu_ledger_push_samples_dropped_total", {{"reason", "rejected"}}), "20");
  EXPECT_EQ(out.value("gpu_ledger_push_samples_dropped_total", {{"reason", "queue_full"}}), "30");
  EXPECT_EQ(out.value("gpu_ledger_push_samples_dropped_total", {{"reason", "unreadable"}}), "10");
  EXPECT_EQ(out.value("gpu_ledger_push_queue_samples"), "700");
  EXPECT_EQ(out.value("gpu_ledger_push_queue_bytes"), "8192");
  EXPECT_EQ(out.value("gpu_ledger_push_queue_age_seconds"), "45");
  EXPECT_EQ(out.value("gpu_ledger_push_last_success_timestamp_seconds"),
            out.value("gpu_ledger_snapshot_timestamp_seconds"));
  cycle.push = PushStats{};
  const Exposition fresh = expose(cycle);
  EXPECT_EQ(fresh.value("gpu_ledger_push_queue_age_seconds"), "0");
  EXPECT_FALSE(fresh.has("gpu_ledger_push_last_success_timestamp_seconds"));
  cycle.push.reset();
  for (const auto& [name, family] : expose(cycle).families) EXPECT_FALSE(name.starts_with("gpu_ledger_push")) << name;
}

TEST(IdleMemory, OfADesktopIsNotWaste) {
  Cycle cycle = node_example();
  const Labels gpu{{"gpu", "0"}};
  EXPECT_EQ(expose(cycle).value("gpu_idle_memory_total_bytes", gpu), Shown("21474836480"));
  // The books do not judge one that only draws.
  ProcessAccount& desktop = process_of(cycle, 200);
  desktop.compute = false;
  desktop.idle = {};
  const Exposition out = expose(cycle);
  EXPECT_EQ(out.value("gpu_idle_memory_total_bytes", gpu), Shown("0"));
  EXPECT_TRUE(out.find("gpu_idle_process_idle_memory_bytes", {{"pid", "200"}}).empty());
  EXPECT_EQ(out.find("gpu_idle_process_memory_used_bytes", {{"pid", "200"}}).size(), 1u);
  // With nobody else there, nothing is idle, and that is known.
  std::erase_if(cycle.ledger.processes,
                [](const ProcessAccount& one) { return one.gpu_index == 0 && one.identity.key.pid != 200; });
  EXPECT_EQ(expose(cycle).value("gpu_idle_memory_total_bytes", gpu), Shown("0"));
}

// Series with this pid, by pid.
std::map<std::string, size_t> series_by_process(const Exposition& out) {
  std::map<std::string, size_t> counts;
  for (const ParsedSample& sample : out.samples) {
    if (const auto pid = sample.labels.find("pid"); pid != sample.labels.end()) ++counts[pid->second];
  }
  return counts;
}

TEST(Presets, LeanHasOneSetOfNamesAndAtMostSevenSeriesForAProcess) {
  Cycle cycle = node_example();
  for (ProcessAccount& process : cycle.ledger.processes) process.encoder.reset();
  const Exposition out = expose(cycle, lean());
  for (const ParsedSample& sample : out.samples) {
    EXPECT_TRUE(sample.name.starts_with("gpu_ledger_") || sample.name.starts_with("process_")) << sample.name;
  }
  EXPECT_FALSE(out.has("gpu_ledger_driver_call_duration_seconds_count"));
  EXPECT_FALSE(out.has("gpu_ledger_throttle_seconds_total")) << "of device-detail";
  EXPECT_TRUE(out.has("gpu_ledger_throttle_active")) << "alerts read it";
  const auto counts = series_by_process(out);
  EXPECT_EQ(counts.size(), 5u);
  for (const auto& [pid, count] : counts) EXPECT_LE(count, 7u) << pid;
  EXPECT_EQ(counts.at("100"), 7u) << "shared: with its error";
  // What a process spent is the same by either name.
  EXPECT_EQ(out.micro_sum("gpu_ledger_process_energy_joules_total"),
            expose(cycle).micro_sum("my_gpu_process_energy_joules_total"));
}

TEST(Presets, CompatibleHasTheOlderNamesAndNoSecondSetOfTheSameNumbers) {
  const Exposition out = expose(node_example());
  EXPECT_TRUE(out.has("my_gpu_process_energy_joules_total"));
  EXPECT_FALSE(out.has("gpu_ledger_driver_call_duration_seconds_count")) << "only for those who ask";
  EXPECT_FALSE(out.has("gpu_ledger_process_energy_joules_total"));
  EXPECT_TRUE(out.has("gpu_ledger_process_info"));
}

TEST(Presets, TheLimitOfSeriesCountsWhatIsShown) {
  Cycle cycle = node_example();
  const ProcessAccount one = process_of(cycle, 100);
  for (Pid pid = 1000; pid < 1040; ++pid) {
    cycle.ledger.processes.push_back(one);
    cycle.ledger.processes.back().identity.key = {pid, pid};
  }
  ExposeOptions options = lean();
  options.max_series = 0;
  options.max_series = expose(cycle, options).samples.size() - 1;
  const Exposition out = expose(cycle, options);
  EXPECT_LE(out.samples.size(), options.max_series);
  // Counted with the series of all collectors, half of them would have to go.
  EXPECT_GT(out.find("gpu_ledger_process_info").size(), 35u);
}

}  // namespace
}  // namespace gpuledger::expose
