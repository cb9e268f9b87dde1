// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "expose/expose.h"
#include "exposition_parser.h"
#include "node_example.h"

namespace gpuledger::expose {
namespace {

TEST(DeviceCollector, InfoSaysWhatTheGpuIs) {
  const Exposition out = expose(node_example());
  const auto found = out.find("gpu_ledger_device_info", {{"gpu", "0"}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]->value, "1");
  EXPECT_EQ(found[0]->labels, (Labels{{"gpu", "0"},
                                      {"uuid", "GPU-0000"},
                                      {"model", "NVIDIA H200"},
                                      {"pci_bus_id", "00000000:00:00.0"},
                                      {"driver", "570.133.20"},
                                      {"mig_mode", "disabled"},
                                      {"energy_source", "counter"},
                                      {"serial", "1653020"},
                                      {"vbios_version", "96.00.A5.00.00"},
                                      {"accounting_mode", "enabled"}}));
  EXPECT_EQ(out.find("gpu_ledger_device_info", {{"gpu", "1"}, {"mig_mode", "enabled"}}).size(), 1u);
  const Labels t4{{"gpu", "3"}, {"mig_mode", "unsupported"}, {"energy_source", "power_integral"}};
  ASSERT_EQ(out.find("gpu_ledger_device_info", t4).size(), 1u);
  EXPECT_FALSE(out.find("gpu_ledger_device_info", t4)[0]->labels.contains("accounting_mode"));
}

TEST(DeviceCollector, HealthOfTheGpus) {
  const Exposition out = expose(node_example());
  const Labels gpu{{"gpu", "0"}};
  const auto of = [&](const std::string& name, const std::string& label, const std::string& value) {
    return out.value(name, {{"gpu", "0"}, {label, value}});
  };
  EXPECT_EQ(of("gpu_ledger_xid_last_seen_timestamp_seconds", "xid", "31"), Shown("1700000000.25"));
  EXPECT_EQ(of("gpu_ledger_temperature_celsius", "sensor", "gpu"), Shown("61"));
  EXPECT_EQ(of("gpu_ledger_temperature_celsius", "sensor", "memory"), Shown("70"));
  EXPECT_EQ(of("gpu_ledger_clock_hertz", "domain", "sm"), Shown("1755000000"));
  EXPECT_EQ(of("gpu_ledger_clock_hertz", "domain", "memory"), Shown("3201000000"));
  EXPECT_EQ(out.value("gpu_ledger_fan_speed_ratio", gpu), Shown("0.35"));
  EXPECT_EQ(of("gpu_ledger_throttle_active", "reason", "sw_power_cap"), Shown("1"));
  EXPECT_EQ(of("gpu_ledger_throttle_active", "reason", "hw_thermal"), Shown("1"));
  EXPECT_EQ(of("gpu_ledger_throttle_active", "reason", "hw_slowdown"), Shown("0"));
  EXPECT_EQ(of("gpu_ledger_throttle_seconds_total", "reason", "power"), Shown("12.500000001"));
  EXPECT_EQ(out.value("gpu_ledger_retired_pages_pending", gpu), Shown("0"));
  EXPECT_EQ(of("gpu_ledger_nvlink_bytes_total", "direction", "received"),
            Shown(std::to_string(1024 * (static_cast<int>(Vital::kNvlinkReceived) + 1))));
  EXPECT_TRUE(out.find("gpu_ledger_temperature_celsius", {{"gpu", "2"}}).empty()) << "lost";
  EXPECT_EQ(out.value("gpu_ledger_gpus_expected"), Shown("5"));
  EXPECT_EQ(out.value("gpu_ledger_gpus_visible"), Shown("3"));
  EXPECT_EQ(out.value("gpu_ledger_node_boot_timestamp_seconds"), Shown("1699990000"));
}

TEST(DeviceCollector, EnergyPowerAndXids) {
  const Exposition out = expose(node_example());
  const Labels h200{{"gpu", "0"}, {"uuid", "GPU-0000"}};
  EXPECT_EQ(out.value("gpu_ledger_device_up", h200), Shown("1"));
  EXPECT_EQ(out.value("gpu_ledger_device_energy_joules_total", h200), Shown("6000.000123"));
  EXPECT_EQ(out.value("gpu_ledger_device_power_watts", h200), Shown("312.5"));
  EXPECT_EQ(out.value("gpu_ledger_device_idle_power_watts", h200), Shown("75.5"));
  EXPECT_EQ(out.value("gpu_ledger_attribution_error_ratio", h200), Shown("0.0425"));
  EXPECT_EQ(out.value("gpu_ledger_attribution_comparisons_total", h200), Shown("12"));
  EXPECT_EQ(out.find("gpu_ledger_attribution_error_ratio").size(), 1u) << "nothing was compared on the others";
  EXPECT_EQ(out.value("gpu_ledger_xid_errors_total", {{"gpu", "0"}, {"xid", "31"}}), Shown("2"));
  EXPECT_EQ(out.find("gpu_ledger_xid_errors_total").size(), 2u);
}

TEST(DeviceCollector, WhenTheBooksWereOpened) {
  const Exposition out = expose(node_example());
  const Labels h200{{"gpu", "0"}, {"uuid", "GPU-0000"}};
  EXPECT_EQ(out.value("gpu_ledger_books_opened_timestamp_seconds", h200), Shown("1699999000.25"));
  EXPECT_EQ(out.value("gpu_ledger_books_run", h200), Shown("3"));
  for (const char* name : {"gpu_ledger_books_opened_timestamp_seconds", "gpu_ledger_books_run"}) {
    EXPECT_EQ(out.find(name).size(), 1u) << "the others' are from an older state";
  }
}

TEST(DeviceCollector, EveryReasonIsAlwaysThere) {
  const Exposition out = expose(node_example());
  for (const char* reason : {"idle", "static", "unseen", "exporter_down", "anomaly"}) {
    EXPECT_EQ(out.find("gpu_ledger_device_unattributed_joules_total", {{"reason", reason}}).size(), 4u) << reason;
  }
  EXPECT_EQ(out.value("gpu_ledger_device_unattributed_joules_total", {{"gpu", "0"}, {"reason", "idle"}}),
            Shown("1000.000001"));
  EXPECT_EQ(out.value("gpu_ledger_device_unattributed_joules_total", {{"gpu", "0"}, {"reason", "static"}}), Shown("0"));
}

TEST(DeviceCollector, LostGpuKeepsItsCountersOnly) {
  const Exposition out = expose(node_example());
  const Labels lost{{"gpu", "2"}};
  EXPECT_EQ(out.find("gpu_ledger_device_info", lost).size(), 1u);
  EXPECT_EQ(out.value("gpu_ledger_device_up", lost), Shown("0"));
  EXPECT_EQ(out.value("gpu_ledger_device_energy_joules_total", lost), Shown("0.56"));
  for (const char* name : {"gpu_ledger_device_power_watts", "gpu_ledger_device_idle_power_watts",
                           "gpu_idle_memory_total_bytes", "gpu_process_info", "my_gpu_process_sm_utilization_ratio"}) {
    EXPECT_TRUE(out.find(name, lost).empty()) << name;
  }
}

TEST(PodCollector, OneFamilyPerKindOfOwner) {
  const Exposition out = expose(node_example());
  const Labels pod{{"namespace", "ml"},
                   {"pod", "train-0"},
                   {"container", "pytorch"},
                   {"pod_uid", "0b6f1c52-91ab-4c2c-8a0f-0d5a4d6a1f10"},
                   {"gpu", "0"}};
  EXPECT_EQ(out.micro_sum("gpu_ledger_pod_energy_joules_total", pod), 3'000'000'000);
  EXPECT_EQ(out.find("gpu_ledger_pod_energy_joules_total", pod).size(), 2u);
  EXPECT_EQ(out.value("gpu_ledger_pod_gpu_seconds_total", pod), Shown("20"));
  EXPECT_EQ(out.value("gpu_ledger_pod_idle_memory_bytes", pod), Shown("0"));
  EXPECT_EQ(
      out.find("gpu_ledger_slurm_job_energy_joules_total")[0]->labels,
      (Labels{{"slurm_job_id", "4711"}, {"job", "4711"}, {"step", "0"}, {"gpu", "1"}, {"energy_estimated", "false"}}));
  EXPECT_EQ(out.value("gpu_ledger_slurm_job_gpu_seconds_total"), Shown("9"));
  EXPECT_EQ(out.find("gpu_ledger_container_energy_joules_total")[0]->labels, (Labels{{"runtime", "docker"},
                                                                                     {"container_id", "9f3c"},
                                                                                     {"container", "jupyter"},
                                                                                     {"gpu", "2"},
                                                                                     {"energy_estimated", "false"}}));
  EXPECT_EQ(out.micro_sum("gpu_ledger_host_energy_joules_total", {{"gpu", "0"}}), 1'500'000'100);
  EXPECT_EQ(out.micro_sum("gpu_ledger_host_energy_joules_total", {{"gpu", "1"}}), 60'000'000);
  const auto service = out.find("gpu_ledger_host_energy_joules_total", {{"unit", "triton.service"}, {"user", "998"}});
  EXPECT_EQ(service.size(), 2u);
  EXPECT_EQ(out.find("gpu_ledger_unknown_owner_energy_joules_total")[0]->labels,
            (Labels{{"gpu", "2"}, {"energy_estimated", "false"}}));
  EXPECT_EQ(out.micro_sum("gpu_ledger_unknown_owner_energy_joules_total"), 60'000);
}

TEST(PodCollector, ErrorsOfOwnersWithSharedEnergy) {
  Cycle cycle = node_example();
  cycle.ledger.owners[0].standard_error_joules = 12.5;
  const Exposition out = expose(cycle);
  const auto pod = out.find("gpu_ledger_pod_energy_standard_error_joules");
  ASSERT_EQ(pod.size(), 1u);
  EXPECT_EQ(pod[0]->value, "12.5");
  EXPECT_EQ(pod[0]->labels, (Labels{{"namespace", "ml"},
                                    {"pod", "train-0"},
                                    {"container", "pytorch"},
                                    {"pod_uid", "0b6f1c52-91ab-4c2c-8a0f-0d5a4d6a1f10"},
                                    {"gpu", "0"}}));
  const Labels service{{"unit", "triton.service"}, {"user", "998"}, {"gpu", "1"}};
  EXPECT_EQ(out.value("gpu_ledger_host_energy_standard_error_joules", service), Shown("0.5"));
  const auto job = out.find("gpu_ledger_slurm_job_energy_standard_error_joules");
  ASSERT_EQ(job.size(), 1u);
  EXPECT_EQ(job[0]->value, "2.5");
  EXPECT_EQ(job[0]->labels, (Labels{{"slurm_job_id", "4711"}, {"job", "4711"}, {"step", "0"}, {"gpu", "1"}}));
  const auto container = out.find("gpu_ledger_container_energy_standard_error_joules");
  ASSERT_EQ(container.size(), 1u);
  EXPECT_EQ(container[0]->value, "0.03");
  EXPECT_EQ(container[0]->labels,
            (Labels{{"runtime", "docker"}, {"container_id", "9f3c"}, {"container", "jupyter"}, {"gpu", "2"}}));

  cycle.ledger.owners[0].standard_error_joules = 2.4e-11;
  EXPECT_EQ(expose(cycle).value("gpu_ledger_pod_energy_standard_error_joules"), Shown("0")) << "noise";
  for (OwnerAccount& owner : cycle.ledger.owners) owner.booked.shared = Energy();
  const Exposition measured = expose(cycle);
  for (const std::string kind : {"pod", "slurm_job", "container", "host", "unknown_owner"}) {
    EXPECT_TRUE(measured.has("gpu_ledger_" + kind + "_energy_joules_total"));
    EXPECT_FALSE(measured.has("gpu_ledger_" + kind + "_energy_standard_error_joules")) << "all of it is measured";
  }
}

TEST(PodCollector, IdleMemoryIsAbsentForPodsThatAreGone) {
  Cycle cycle = node_example();
  cycle.ledger.owners[0].idle_memory.reset();
  const Exposition out = expose(cycle);
  EXPECT_TRUE(out.has("gpu_ledger_pod_energy_joules_total"));
  EXPECT_FALSE(out.has("gpu_ledger_pod_idle_memory_bytes"));
}

TEST(PodCollector, IdleMemoryIsAbsentWhereTheGpuCannotSay) {
  Cycle cycle = node_example();
  cycle.batch.devices[0].utilization = UtilizationState::kFailed;
  for (ProcessAccount& process : cycle.ledger.processes) process.idle = {};
  EXPECT_FALSE(expose(cycle).has("gpu_ledger_pod_idle_memory_bytes"));
}

TEST(PodCollector, SwappedCardOfTheSameIndexAddsUp) {
  Cycle cycle = node_example();
  cycle.ledger.owners[0].standard_error_joules = 3;
  OwnerAccount other = cycle.ledger.owners[0];
  other.gpu.text = "GPU-before";
  other.booked = {Energy(), Energy::millijoules(1), {}};
  other.standard_error_joules = 4;
  cycle.ledger.owners.push_back(other);
  const Exposition out = expose(cycle);
  EXPECT_EQ(out.micro_sum("gpu_ledger_pod_energy_joules_total"), 3'000'001'000);
  EXPECT_EQ(out.value("gpu_ledger_pod_energy_standard_error_joules"), Shown("5")) << "errors of two GPUs";
}

TEST(DriverCallsCollector, HasAHistogramOfEachCallForThoseWhoAsk) {
  const Labels call{{"call", "nvmlDeviceGetProcessUtilization"}};
  EXPECT_FALSE(expose(node_example()).has("gpu_ledger_driver_call_duration_seconds_sum"));
  ExposeOptions options = example_options();
  options.collectors.insert("driver-calls");
  EXPECT_EQ(expose(node_example(), options).value("gpu_ledger_driver_call_duration_seconds_sum", call), Shown("5"));
}

TEST(SelfCollector, SaysHowTheProgramFares) {
  const Exposition out = expose(node_example());
  EXPECT_EQ(out.value("gpu_ledger_build_info", {{"version", "1.2.3"}, {"revision", "0123abc"}}), Shown("1"));
  EXPECT_EQ(out.value("gpu_ledger_simulated"), Shown("1"));
  EXPECT_EQ(out.value("gpu_ledger_source_up", {{"source", "nvml"}}), Shown("1"));
  EXPECT_EQ(out.value("gpu_ledger_source_up", {{"source", "pod-resources"}}), Shown("0"));
  EXPECT_EQ(out.value("gpu_ledger_source_errors_total", {{"source", "nvml"}, {"code", "timeout"}}), Shown("3"));
  EXPECT_EQ(out.value("gpu_ledger_sample_duration_seconds_count"), Shown("2"));
  EXPECT_EQ(out.value("gpu_ledger_sample_duration_seconds_bucket", {{"le", "1.0"}}), Shown("2"));
  EXPECT_EQ(out.value("gpu_ledger_snapshot_timestamp_seconds"), Shown("1700000100.25"));
  EXPECT_EQ(out.value("gpu_ledger_processes_without_owner"), Shown("1"));
  EXPECT_EQ(out.value("process_cpu_seconds_total"), Shown("12.5"));
  EXPECT_EQ(out.value("process_start_time_seconds"), Shown("1700000000.5"));
  EXPECT_EQ(out.value("process_resident_memory_bytes"), Shown("20971520"));
  EXPECT_EQ(out.value("process_virtual_memory_bytes"), Shown("209715200"));
  EXPECT_EQ(out.value("process_open_fds"), Shown("12"));
  EXPECT_EQ(out.value("process_max_fds"), Shown("1024"));
  EXPECT_EQ(out.value("process_threads"), Shown("5"));
}

TEST(SelfCollector, CountsTheSeriesItselfIncluded) {
  for (const Format format : {Format::kText, Format::kOpenMetrics}) {
    const auto text = format == Format::kText ? write_text(node_example(), example_options())
                                              : write_openmetrics(node_example(), example_options());
    const auto out = parse_exposition(text, format);
    ASSERT_TRUE(out.ok()) << out.error().message;
    EXPECT_EQ(out->value("gpu_ledger_series"), Shown(std::to_string(out->samples.size())));
  }
}

TEST(SelfCollector, AbsentIsAbsent) {
  Cycle cycle = node_example();
  cycle.simulated = false;
  cycle.self.max_fds.reset();
  cycle.sources.clear();
  const Exposition out = expose(cycle);
  EXPECT_FALSE(out.has("gpu_ledger_simulated"));
  EXPECT_FALSE(out.has("process_max_fds"));
  EXPECT_EQ(out.value("gpu_ledger_source_up"), Shown("1"));  // the batch's own word remains
}

TEST(Kubernetes, AllocationsAreListedEachAndTheirIdlenessOnce) {
  const Exposition out = expose(node_example());
  EXPECT_EQ(out.find("gpu_ledger_allocation_info", {{"gpu", "0"}, {"pod", "train-0"}}).size(), 2u);
  EXPECT_EQ(out.find("gpu_ledger_allocation_info", {{"replica", "1"}, {"resource", "nvidia.com/gpu.shared"}}).size(),
            1u);
  EXPECT_EQ(out.find("gpu_ledger_allocation_info", {{"mig_uuid", "MIG-1"}}).size(), 1u);
  const auto idle = out.find("gpu_ledger_allocation_idle_seconds", {{"gpu", "0"}});
  ASSERT_EQ(idle.size(), 1u);
  EXPECT_EQ(idle[0]->value, "61.5");
  EXPECT_EQ(out.find("gpu_ledger_allocatable_devices", {})[0]->value, "8");
}

TEST(Kubernetes, AllocationsHaveTheUidOfTheirPodWhereItIsKnown) {
  Cycle cycle = node_example();
  cycle.ledger.allocations.back().allocation.pod_uid = Name();
  const Exposition out = expose(cycle);
  EXPECT_EQ(out.find("gpu_ledger_allocation_info", {{"gpu", "0"}, {"pod_uid", "uid-1"}}).size(), 2u);
  EXPECT_EQ(out.find("gpu_ledger_allocation_idle_seconds", {{"gpu", "0"}, {"pod_uid", "uid-1"}}).size(), 1u);
  EXPECT_EQ(out.find("gpu_ledger_container_allocated_devices", {{"pod_uid", "uid-1"}}).size(), 0u);
  EXPECT_FALSE(out.find("gpu_ledger_allocation_info", {{"gpu", "1"}})[0]->labels.contains("pod_uid"));
}

TEST(Slurm, AllocationsSayWhoseTheJobIs) {
  const Exposition out = expose(node_example());
  const auto info = out.find("gpu_ledger_slurm_allocation_info", {{"gpu", "0"}, {"uuid", "GPU-h200"}});
  ASSERT_EQ(info.size(), 1u);
  EXPECT_EQ(info[0]->labels.at("slurm_job_id"), "7");
  EXPECT_EQ(info[0]->labels.at("account"), "physics");
  EXPECT_EQ(info[0]->labels.at("partition"), "gpu");
  EXPECT_EQ(info[0]->labels.at("uid"), "2001");
  EXPECT_EQ(info[0]->labels.at("user_name"), "ana");
  const auto idle = out.find("gpu_ledger_slurm_allocation_idle_seconds", {{"slurm_job_id", "7"}});
  ASSERT_EQ(idle.size(), 1u);
  EXPECT_EQ(idle[0]->value, "61");
  EXPECT_FALSE(out.find("gpu_ledger_allocation_info", {{"gpu", "0"}})[0]->labels.contains("slurm_job_id"));
}

TEST(Kubernetes, PodLabelsAreOnPodInfoAlone) {
  const Exposition out = expose(node_example());
  const auto pods = out.find("gpu_ledger_pod_info", {{"pod", "train-0"}, {"name_source", "apiserver"}});
  ASSERT_EQ(pods.size(), 1u);
  EXPECT_EQ(pods[0]->labels.at("label_app_kubernetes_io_name"), "train \"x\"");
  for (const ParsedSample& sample : out.samples) {
    EXPECT_TRUE(sample.name == "gpu_ledger_pod_info" || !sample.labels.contains("label_app_kubernetes_io_name"));
  }
}

TEST(Kubernetes, LabelsThatBecomeOneNameAreWrittenOnce) {
  Cycle cycle = node_example();
  auto identities = std::make_shared<IdentityMap>(*cycle.identities);
  identities->pods[0].labels = {{"a.b", "1"}, {"a-b", "2"}};
  cycle.identities = identities;
  const Exposition out = expose(cycle);
  EXPECT_EQ(out.find("gpu_ledger_pod_info", {{"pod", "train-0"}}).size(), 1u);
}

TEST(SelfCollector, SaysThatNobodyTellsTheNamesOfPods) {
  Cycle cycle = node_example();
  const auto missing = [&] { return expose(cycle).value("gpu_ledger_pod_names_missing"); };
  EXPECT_EQ(missing(), Shown("1"));
  cycle.sources.push_back({"apiserver", true, "", {}});
  EXPECT_EQ(missing(), Shown("0"));
  cycle.sources.back() = {"apiserver", false, "", {}, true};
  EXPECT_EQ(missing(), std::nullopt) << "not decided yet";
  std::erase_if(cycle.sources, [](const SourceHealth& health) { return health.source != "nvml"; });
  EXPECT_EQ(missing(), std::nullopt) << "no Kubernetes";
}

// By allocations a pod is known that has a GPU to itself; on one that several share, they tell no process's pod.
TEST(SelfCollector, AllocationsAloneNameOnlyPodsThatShareNoGpu) {
  Cycle cycle = node_example();
  const auto missing = [&] { return expose(cycle).value("gpu_ledger_pod_names_missing"); };
  const auto pod_of_five = [&](const char* name) {
    auto identities = std::make_shared<IdentityMap>(*cycle.identities);
    identities->by_pid[5].owner.kind = OwnerKind::kPod;
    identities->by_pid[5].owner.pod = name;
    cycle.identities = identities;
  };
  cycle.sources = {{"pod-resources", true, "", {}}, {"pods", false, "needs --node-name", {}}};
  EXPECT_EQ(missing(), Shown("0")) << "no process needs more";
  pod_of_five("alone");
  EXPECT_EQ(missing(), Shown("0"));
  pod_of_five("");
  EXPECT_EQ(missing(), Shown("1"));
  cycle.sources[1].undecided = true;
  EXPECT_EQ(missing(), std::nullopt) << "its source may still answer";
  // The other mix: names are there, allocations are not, which gpu_ledger_source_up says.
  cycle.sources = {{"pod-resources", false, "refused", {}}, {"apiserver", true, "", {}}};
  EXPECT_EQ(missing(), Shown("0")) << "the pod may have started this moment";
}

}  // namespace
}  // namespace gpuledger::expose
