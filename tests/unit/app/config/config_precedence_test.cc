// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstdlib>

#include "app/config/config_settings.h"
#include "config_reading.h"

namespace gpuledger::app {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Config, DefaultsOfTheTableAreTheDefaultsOfTheStruct) {
  const Config untouched;
  for (const Setting& setting : settings()) {
    if (setting.default_text.empty()) continue;
    Config config;
    ASSERT_TRUE(setting.member.apply({std::string(setting.default_text)}, config).ok()) << setting.name;
    for (const Setting& other : settings()) {
      EXPECT_TRUE(other.member.same(untouched, config)) << setting.name << " changes " << other.name;
    }
  }
}

TEST(Config, NothingGivenIsTheDefault) {
  const Config config = config_of({});
  EXPECT_EQ(config.command->name, "serve");
  EXPECT_THAT(config.listen_addresses, ElementsAre(":9400"));
  EXPECT_THAT(config.unknown_environment, IsEmpty());
}

TEST(Config, ExactTime) {
  EXPECT_EQ(config_of({}).exact_time, ExactTimeMode::kAuto);
  EXPECT_EQ(config_of({"--exact-time=off"}).exact_time, ExactTimeMode::kOff);
  EXPECT_EQ(config_of({"--exact-time=on"}).exact_time, ExactTimeMode::kOn);
  EXPECT_EQ(config_of({}).exact_time_budget, 0.005);
  EXPECT_EQ(config_of({"--exact-time-budget=0.5%"}).exact_time_budget, 0.005) << "the default, as it is written";
  EXPECT_EQ(config_of({"--exact-time-budget=12.5%"}).exact_time_budget, 0.125);
  EXPECT_EQ(config_of({"--exact-time-budget=2"}).exact_time_budget, 0.02);
}

// Every layer gives idle-interval another value; taking away the highest uncovers the next.
TEST(Config, FlagThenVariableThenOlderVariableThenFileThenDefault) {
  const ConfigFile file("idle-interval: 14s\n");
  Environment environment = {{"GPU_LEDGER_IDLE_INTERVAL", "12s"}, {"POLL_INTERVAL", "13s"}};
  EXPECT_EQ(config_of({file.flag(), "--idle-interval=11s"}, environment).idle_interval, 11s);
  EXPECT_EQ(config_of({file.flag()}, environment).idle_interval, 12s);
  environment.erase("GPU_LEDGER_IDLE_INTERVAL");
  EXPECT_EQ(config_of({file.flag()}, environment).idle_interval, 13s);
  environment.erase("POLL_INTERVAL");
  EXPECT_EQ(config_of({file.flag()}, environment).idle_interval, 14s);
  EXPECT_EQ(config_of({}, environment).idle_interval, 5s);
}

TEST(Config, EverySettingHasItsVariable) {
  for (const Setting& setting : settings()) {
    if (setting.default_text.empty()) continue;
    EXPECT_EQ(error_of({}, {{environment_name(setting.name), std::string(setting.default_text)}}), "(no error)");
  }
  EXPECT_EQ(environment_name("collector.dcgm-modern"), "GPU_LEDGER_COLLECTOR_DCGM_MODERN");
  EXPECT_TRUE(config_of({}, {{"GPU_LEDGER_COLLECTOR_DCGM_MODERN", "true"}}).collectors.contains("dcgm-modern"));
  EXPECT_FALSE(config_of({}, {{"GPU_LEDGER_COLLECTOR_IDLE", "0"}}).collectors.contains("idle"));
  EXPECT_EQ(config_of({}, {{"GPU_LEDGER_TEXTFILE", "/x/a.prom"}}).textfile, "/x/a.prom");
}

TEST(Config, EmptyVariableCountsAsNotSet) {
  const Config config = config_of({}, {{"GPU_LEDGER_IDLE_INTERVAL", ""}, {"POLL_INTERVAL", "7s"}, {"HTTP_PORT", ""}});
  EXPECT_EQ(config.idle_interval, 7s);
  EXPECT_THAT(config.listen_addresses, ElementsAre(":9400"));
}

TEST(Config, ConfigFileByVariable) {
  const ConfigFile file("log-level: debug\n");
  const Config config = config_of({}, {{"GPU_LEDGER_CONFIG", file.path()}});
  EXPECT_EQ(config.log_level, "debug");
  EXPECT_EQ(config.config_file, file.path());
}

TEST(Config, WhatIsOverruledIsNotChecked) {
  EXPECT_EQ(config_of({"--idle-interval=6s"}, {{"POLL_INTERVAL", "soon"}}).idle_interval, 6s);
  EXPECT_THAT(config_of({"--listen-address=:1"}, {{"HTTP_PORT", "x"}}).listen_addresses, ElementsAre(":1"));
}

TEST(OlderNames, VariablesOfTheIdleExporter) {
  const Config config = config_of({}, {{"HTTP_PORT", "9835"},
                                       {"POLL_INTERVAL", "1m30s"},
                                       {"NODE_NAME", "n1"},
                                       {"POD_NAME", "p1"},
                                       {"POD_NAMESPACE", "ns1"}});
  EXPECT_THAT(config.listen_addresses, ElementsAre(":9835"));
  EXPECT_EQ(config.idle_interval, 90s);
  EXPECT_EQ(config.node_name, "n1");
  EXPECT_EQ(config.pod_name, "p1");
  EXPECT_EQ(config.pod_namespace, "ns1");
}

TEST(OlderNames, FlagsOfTheProcessExporter) {
  const Config config =
      config_of({"--dcgm-update-frequency=2s", "--process-scan-interval=10s", "--kubernetes-enabled=true",
                 "--pod-resources-socket=/var/lib/kubelet/pod-resources/kubelet.sock", "--metric-retention=5m",
                 "--metric-prefix=my_gpu_process", "--listen-address=:9400", "--metrics-path=/metrics",
                 "--log-level=info", "--enable-energy-estimation=false", "--gpu-idle-power=0"});
  EXPECT_EQ(config.sample_interval, 2s);
  EXPECT_EQ(config.attribution, Attribution::kMeasuredOnly);
  EXPECT_FALSE(config.gpu_idle_power.has_value());
  EXPECT_EQ(config.kubernetes, true);
  EXPECT_EQ(config_of({"--enable-energy-estimation=true"}).attribution, Attribution::kAdaptive);
  EXPECT_EQ(config_of({"--enable-energy-estimation"}).attribution, Attribution::kAdaptive);
  EXPECT_THAT(config_of({"--gpu.devices=0,1"}).gpu_devices, ElementsAre("0", "1"));
}

TEST(OlderNames, VariableThatKubernetesMadeOfAServiceIsLeftAlone) {
  const Config config = config_of({}, {{"HTTP_PORT", "tcp://10.0.0.1:80"},
                                       {"GPU_LEDGER_PORT", "tcp://10.0.0.2:9400"},
                                       {"GPU_LEDGER_SERVICE_HOST", "10.0.0.2"},
                                       {"GPU_LEDGER_LOGLEVEL", "debug"}});
  EXPECT_THAT(config.listen_addresses, ElementsAre(":9400"));
  EXPECT_THAT(config.unknown_environment, ElementsAre("GPU_LEDGER_LOGLEVEL"));
}

TEST(Flags, FormsOfGoAndOfGetopt) {
  EXPECT_EQ(config_of({"--log-level=debug"}).log_level, "debug");
  EXPECT_EQ(config_of({"--log-level", "debug"}).log_level, "debug");
  EXPECT_EQ(config_of({"-log-level=debug"}).log_level, "debug");
  EXPECT_EQ(config_of({"-log-level", "debug"}).log_level, "debug");
  EXPECT_EQ(config_of({"--log-level=warn", "--log-level=error"}).log_level, "error");
  EXPECT_EQ(config_of({"--textfile=a=b"}).textfile, "a=b");
  EXPECT_EQ(config_of({"once", "--textfile", "x"}).command->name, "once");
  EXPECT_EQ(config_of({"--textfile", "x", "once"}).command->name, "once");
  EXPECT_EQ(config_of({"serve"}).command->name, "serve");
  EXPECT_EQ(config_of({"--", "once"}).command->name, "once");
}

TEST(Flags, Switches) {
  EXPECT_FALSE(config_of({"--no-collector.idle"}).collectors.contains("idle"));
  EXPECT_FALSE(config_of({"--collector.idle=false"}).collectors.contains("idle"));
  EXPECT_FALSE(config_of({"--collector.idle", "false", "once"}).collectors.contains("idle"));
  EXPECT_TRUE(config_of({"--no-collector.idle", "--collector.idle"}).collectors.contains("idle"));
  EXPECT_TRUE(config_of({"--no-collector.idle=false"}).collectors.contains("idle"));
  EXPECT_TRUE(config_of({"--collector.dcgm-modern"}).collectors.contains("dcgm-modern"));
  for (const char* name : {"process", "idle", "processlist", "device", "dcgm", "pod", "self"}) {
    EXPECT_TRUE(config_of({}).collectors.contains(name)) << name;
    EXPECT_FALSE(config_of({"--no-collector." + std::string(name)}).collectors.contains(name)) << name;
  }
}

TEST(Flags, Lists) {
  EXPECT_THAT(config_of({"--listen-address=:1", "--listen-address", "unix:/run/a.sock"}).listen_addresses,
              ElementsAre(":1", "unix:/run/a.sock"));
  EXPECT_THAT(config_of({}, {{"GPU_LEDGER_LISTEN_ADDRESS", "127.0.0.1:1, [::1]:2"}}).listen_addresses,
              ElementsAre("127.0.0.1:1", "[::1]:2"));
  EXPECT_THAT(config_of({"--listen-address=:1"}, {{"GPU_LEDGER_LISTEN_ADDRESS", ":2"}}).listen_addresses,
              ElementsAre(":1"));
  EXPECT_THAT(config_of({"--gpu-devices", "0,GPU-2b399198-c670-a848-173b-d3400051a200"}).gpu_devices,
              ElementsAre("0", "GPU-2b399198-c670-a848-173b-d3400051a200"));
  EXPECT_THAT(config_of({"--gpu-devices=all"}).gpu_devices, IsEmpty());
}

TEST(Flags, Choices) {
  EXPECT_EQ(config_of({"--attribution=utilization"}).attribution, Attribution::kUtilization);
  EXPECT_EQ(config_of({"--attribution=measured-only"}).attribution, Attribution::kMeasuredOnly);
  EXPECT_EQ(config_of({"--attribution=adaptive"}).attribution, Attribution::kAdaptive);
  EXPECT_EQ(config_of({"--static-power=equal"}).static_power, StaticPower::kEqual);
  EXPECT_EQ(config_of({"--static-power=separate"}).static_power, StaticPower::kSeparate);
  EXPECT_EQ(config_of({"--backend=nvml"}).backend, Backend::kNvml);
  EXPECT_EQ(config_of({"--backend=sim", "--sim-scenario=x"}).backend, Backend::kSim);
  EXPECT_EQ(config_of({"--gpu-idle-power=25.5"}).gpu_idle_power->milliwatts(), 25500);
  EXPECT_EQ(config_of({"--metric-retention=0"}).metric_retention, 0s);
  EXPECT_EQ(config_of({}).owner_retention, 24h);
  EXPECT_LT(config_of({}).max_series, 20'000u) << "the scrape examples' sample_limit";
  const Config limits =
      config_of({"--owner-retention=1h", "--max-series=0", "--max-exited-processes=7", "--max-ended-owners=9"});
  EXPECT_EQ(limits.owner_retention, 1h);
  EXPECT_EQ(limits.max_series, 0u);
  EXPECT_EQ(limits.max_exited_processes, 7u);
  EXPECT_EQ(limits.max_ended_owners, 9u);
}

TEST(Config, RecordAndReplayTakeAFile) {
  const Config record = config_of({"record", "--for=1m30s", "gpu.jsonl.gz"});
  EXPECT_EQ(record.command->name, "record");
  EXPECT_EQ(record.argument, "gpu.jsonl.gz");
  EXPECT_EQ(record.record_for, std::chrono::seconds(90));
  const Config replay = config_of({"--attribution=utilization", "replay", "--", "-odd.jsonl"});
  EXPECT_EQ(replay.command->name, "replay");
  EXPECT_EQ(replay.argument, "-odd.jsonl");
  EXPECT_EQ(replay.record_for, std::nullopt);
}

TEST(Config, Dcgm) {
  const ConfigFile file("backend: dcgm\ndcgm-library: /x/libdcgm.so\n");
  const Config config = config_of({file.flag()}, {{"GPU_LEDGER_DCGM_ADDRESS", "localhost:5555"}});
  EXPECT_EQ(config.backend, Backend::kDcgm);
  EXPECT_EQ(config.dcgm_library, "/x/libdcgm.so");
  EXPECT_EQ(config.dcgm_address, "localhost:5555");
  EXPECT_TRUE(config_of({"--backend=dcgm", "--dcgm-embedded"}).dcgm_embedded);
  EXPECT_THAT(changes_needing_restart(config, config_of({file.flag()})), testing::ElementsAre("dcgm-address"));
}

TEST(Config, AddOnMode) {
  const Config url = config_of({"--dcgm-exporter-url=http://127.0.0.1:9401/metrics"});
  ASSERT_TRUE(url.dcgm_exporter_url.has_value());
  EXPECT_EQ(url.dcgm_exporter_url->port, 9401);
  EXPECT_EQ(config_of({"--dcgm-exporter-file=/run/prometheus/dcgm.prom"}).dcgm_exporter_file,
            "/run/prometheus/dcgm.prom");
  EXPECT_EQ(url.collectors, Config{}.collectors) << "which of them are shown is decided where the metrics are made";
  EXPECT_THAT(changes_needing_restart(url, Config{}), testing::ElementsAre("dcgm-exporter-url"));
}

TEST(Config, SlowReadingsAndTheTextfilesDcgmNamesAreThereOnRequestOnly) {
  EXPECT_FALSE(config_of({}).dcgm_pcie_throughput);
  EXPECT_FALSE(config_of({}).textfile_dcgm);
  const Config both = config_of({"--dcgm-pcie-throughput", "--textfile-dcgm"});
  EXPECT_TRUE(both.dcgm_pcie_throughput);
  EXPECT_TRUE(both.textfile_dcgm);
  EXPECT_THAT(changes_needing_restart(both, Config{}), testing::ElementsAre("textfile-dcgm", "dcgm-pcie-throughput"));
}

TEST(Config, TheStateIsForTheProgramAloneAndTheTextfileForAll) {
  EXPECT_EQ(config_of({}).state_file_mode, 0600u);
  EXPECT_EQ(config_of({}).textfile_mode, 0644u);
  const Config given = config_of({"--state-file-mode=0640", "--textfile-mode=640"});
  EXPECT_EQ(given.state_file_mode, 0640u);
  EXPECT_EQ(given.textfile_mode, 0640u);
  EXPECT_THAT(changes_needing_restart(given, Config{}), testing::ElementsAre("textfile-mode", "state-file-mode"));
}

TEST(Config, AccountingSaysWhatToDo) {
  EXPECT_EQ(config_of({"accounting", "status"}).command->name, "accounting");
  EXPECT_EQ(config_of({"accounting", "status"}).argument, "status");
  EXPECT_EQ(config_of({"accounting", "--gpu-devices=0", "on"}).argument, "on");
  EXPECT_EQ(config_of({"accounting", "off"}).argument, "off");
}

TEST(Config, KubernetesSettings) {
  const ConfigFile file("pod-labels: [app, team]\n");
  const Config config = config_of({file.flag(), "--pod-source=cri", "--kubelet-insecure", "--docker-socket="});
  EXPECT_THAT(config.pod_labels, ElementsAre("app", "team"));
  EXPECT_EQ(config.pod_source, PodSourceName::kCri);
  EXPECT_TRUE(config.kubelet_insecure);
  EXPECT_EQ(config.docker_socket, "");
  EXPECT_EQ(config.kubernetes, std::nullopt);
  EXPECT_EQ(config_of({"--kubernetes-enabled=false"}).kubernetes, false);
}

TEST(Config, ASwitchThatKnowsAutoTakesItAsANextWordToo) {
  EXPECT_EQ(config_of({"--kubernetes-enabled", "auto", "once"}).command->name, "once");
}

TEST(Config, AnIntervalNotGivenGivesWayToOneGiven) {
  Config config = config_of({"--dcgm-update-frequency=30s"});
  EXPECT_EQ(config.process_scan_interval, 30s);
  EXPECT_EQ(config.idle_interval, 30s);
  config = config_of({}, {{"POLL_INTERVAL", "500ms"}});
  EXPECT_EQ(config.idle_interval, 500ms);
  EXPECT_EQ(config.sample_interval, 500ms);
  EXPECT_EQ(config.process_scan_interval, 500ms);
}

TEST(OlderNames, APollFindsNewProcessesToo) {
  EXPECT_EQ(config_of({}, {{"POLL_INTERVAL", "1s"}}).process_scan_interval, 1s);
  EXPECT_EQ(config_of({}, {{"POLL_INTERVAL", "5s"}}).process_scan_interval, 5s);
  EXPECT_EQ(config_of({}, {{"POLL_INTERVAL", "1m"}}).process_scan_interval, 10s) << "no slower than by itself";
  EXPECT_EQ(config_of({"--sample-interval=30s"}, {{"POLL_INTERVAL", "1m"}}).process_scan_interval, 30s);
  EXPECT_EQ(config_of({"--process-scan-interval=8s"}, {{"POLL_INTERVAL", "1s"}}).process_scan_interval, 8s);
  EXPECT_EQ(config_of({"--idle-interval=6s"}, {{"POLL_INTERVAL", "2s"}}).process_scan_interval, 10s) << "overruled";
}

TEST(ReadSources, TakesArgumentsAndEnvironment) {
  ASSERT_EQ(::setenv("GPU_LEDGER_NODE_NAME", "a=b", 1), 0);
  const char* argv[] = {"gpu-ledger", "once", nullptr};
  const ConfigSources sources = read_sources(2, argv, commands());
  ::unsetenv("GPU_LEDGER_NODE_NAME");
  EXPECT_THAT(sources.arguments, ElementsAre("once"));
  EXPECT_EQ(sources.environment.at("GPU_LEDGER_NODE_NAME"), "a=b");
}

TEST(ConfigPresets, CompatibleIsTheDefaultAndLeanHasOurOwnNamesOnly) {
  EXPECT_EQ(config_of({"--collector.preset=compatible"}).collectors, Config{}.collectors);
  const std::set<std::string> lean = {"process-native", "process-info", "device", "pod", "self"};
  EXPECT_EQ(config_of({"--collector.preset=lean"}).collectors, lean);
  EXPECT_EQ(config_of({}, {{"GPU_LEDGER_COLLECTOR_PRESET", "lean"}}).collectors, lean);
  EXPECT_EQ(config_of({ConfigFile("collector: {preset: lean}").flag()}).collectors, lean);
}

TEST(ConfigPresets, ACollectorThatIsGivenWinsWhereverItIsGiven) {
  // Before or after the preset, and from a source of less weight.
  EXPECT_TRUE(config_of({"--collector.idle", "--collector.preset=lean"}).collectors.contains("idle"));
  EXPECT_TRUE(config_of({"--collector.preset=lean", "--collector.idle"}).collectors.contains("idle"));
  EXPECT_FALSE(config_of({"--collector.preset=lean", "--no-collector.pod"}).collectors.contains("pod"));
  const ConfigFile file("collector: {idle: true}");
  EXPECT_TRUE(config_of({"--collector.preset=lean", file.flag()}).collectors.contains("idle"));
  EXPECT_EQ(error_of({"--collector.preset=small"}), "--collector.preset: \"small\" is not one of compatible or lean");
}

}  // namespace
}  // namespace gpuledger::app
