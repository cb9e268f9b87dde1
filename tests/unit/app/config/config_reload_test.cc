// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "app/config/config_settings.h"
#include "app/runtime/wiring.h"
#include "config_reading.h"

namespace gpuledger::app {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

// Some value that is not the default. A setting that takes none of these needs one more.
Config with_another_value(const Setting& setting) {
  for (const char* value :
       {"true",        "false", "7",      "7s",   "/other",  ":7",         "GPU-7",
        "utilization", "equal", "on",     "10%",  "0640",    "dcgm",       "http://127.0.0.1:7/metrics",
        "kubelet",     "lean",  "debug",  "json", "2026-10", "2026-10-01", "pod",
        "a=\"b\"",     "use",   "H200=1", "USD",  "csv",     "7GiB",       "a=7",
        "plain",       "token", "shared"}) {
    Config config;
    if (setting.member.apply({value}, config).ok() && !setting.member.same(config, Config{})) return config;
  }
  ADD_FAILURE() << "no value for --" << setting.name;
  return {};
}

TEST(Reload, EverySettingTakesEffectWhenItsRowSays) {
  for (const Setting& setting : settings()) {
    const bool live = setting.effect == SettingEffect::kLive;
    const Config fresh = with_another_value(setting);
    Config config;
    const std::vector<std::string> restart = changes_needing_restart(config, fresh);
    EXPECT_EQ(restart, live ? std::vector<std::string>() : std::vector<std::string>{std::string(setting.name)});
    take_live_changes(config, fresh);
    for (const Setting& each : settings()) {
      // Collectors share one member, and all are live.
      const bool collectors = each.group == SettingGroup::kCollectors && setting.group == each.group;
      const bool taken = live && (each.name == setting.name || collectors);
      EXPECT_TRUE(each.member.same(config, taken ? fresh : Config{})) << setting.name << ", " << each.name;
    }
  }
}

// A file that now names another exporter, or no longer does, must not change the collectors before the restart.
TEST(Reload, AddOnModeIsDecidedByTheSettingsInForce) {
  const std::set<std::string> ours = Config{}.collectors;
  ASSERT_TRUE(ours.contains("dcgm"));
  const Config add_on = config_of({"--dcgm-exporter-file=/run/dcgm.prom"});
  std::set<std::string> without = ours;
  without.erase("dcgm");
  Config config;
  take_live_changes(config, add_on);
  EXPECT_EQ(pipeline_options(config).expose.collectors, ours);
  config = add_on;
  EXPECT_EQ(pipeline_options(config).expose.collectors, without);
  take_live_changes(config, Config{});
  EXPECT_EQ(pipeline_options(config).expose.collectors, without);
}

TEST(Reload, RereadSeesTheChangedFileUnderTheSameFlags) {
  const ConfigFile file("metric-retention: 1m\nlog-level: debug\n");
  const ConfigSources sources{{file.flag(), "--log-level=warn"}, {}, commands()};
  const auto before = reread_config(sources);
  ASSERT_TRUE(before.ok());
  EXPECT_EQ(before->metric_retention, 1min);
  file.rewrite("metric-retention: 2m\nlisten-address: ':1'\nlog-level: info\n");
  const auto after = reread_config(sources);
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(after->metric_retention, 2min);
  EXPECT_EQ(after->log_level, "warn");
  EXPECT_THAT(changes_needing_restart(*before, *after), ElementsAre("listen-address"));
  file.rewrite("metric-retention: [\n");
  EXPECT_FALSE(reread_config(sources).ok());
}

TEST(Reload, LiveChangesNeedNoRestart) {
  const Config old;
  const Config live =
      config_of({"--sample-interval=2s", "--process-scan-interval=20s", "--idle-interval=9s", "--metric-retention=1m",
                 "--no-collector.idle", "--gpu-idle-power=30", "--log-level=debug", "--log-format=json"});
  EXPECT_THAT(changes_needing_restart(old, live), IsEmpty());
  const Config restart = config_of(
      {"--listen-address=:1", "--metrics-path=/m", "--metric-prefix=p", "--textfile=/t", "--node-name=n",
       "--web-config-file=/w", "--pod-name=p", "--pod-namespace=s", "--attribution=utilization", "--static-power=equal",
       "--backend=sim", "--nvml-library=/l", "--sim-scenario=/s", "--gpu-devices=0", "--proc-root=/host/proc"});
  EXPECT_EQ(changes_needing_restart(old, restart).size(), 15u);
}

}  // namespace
}  // namespace gpuledger::app
