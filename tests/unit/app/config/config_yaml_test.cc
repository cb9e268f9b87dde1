// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "config_reading.h"

namespace gpuledger::app {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

TEST(ConfigFileText, EveryShape) {
  const ConfigFile file(
      "# the node's settings\n"
      "listen-address: [\":1\", unix:/run/a.sock]\n"
      "gpu-devices: 0,1\n"
      "sample-interval: 500ms\n"
      "gpu-idle-power: 25.5\n"
      "collector.self: no\n"
      "collector:\n"
      "  idle: false\n"
      "  dcgm-modern: true\n"
      "textfile:\n"
      "node-name: \"n 1\"\n"
      "enable-energy-estimation: false\n");
  const Config config = config_of({file.flag()});
  EXPECT_THAT(config.listen_addresses, ElementsAre(":1", "unix:/run/a.sock"));
  EXPECT_THAT(config.gpu_devices, ElementsAre("0", "1"));
  EXPECT_EQ(config.sample_interval, 500ms);
  EXPECT_EQ(config.gpu_idle_power->milliwatts(), 25500);
  EXPECT_FALSE(config.collectors.contains("self"));
  EXPECT_FALSE(config.collectors.contains("idle"));
  EXPECT_TRUE(config.collectors.contains("dcgm-modern"));
  EXPECT_EQ(config.textfile, "");
  EXPECT_EQ(config.node_name, "n 1");
  EXPECT_EQ(config.attribution, Attribution::kMeasuredOnly);
}

TEST(ConfigFileText, EmptyIsNoSettings) {
  for (const char* text : {"", "\n", "# only a comment\n", "---\n", "{}\n"}) {
    const ConfigFile file(text);
    EXPECT_THAT(config_of({file.flag()}).listen_addresses, ElementsAre(":9400")) << text;
  }
}

TEST(ConfigFileText, NestedNamesOfTheProcessList) {
  const ConfigFile file("gpu:\n  devices: [0, 1, 2]\n");
  EXPECT_THAT(config_of({file.flag()}).gpu_devices, ElementsAre("0", "1", "2"));
}

TEST(ConfigFileText, ErrorsNameFileAndLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"log-level: info\nsample_interval: 1s\n",
       ":2: unknown setting \"sample_interval\" (did you mean sample-interval?)"},
      {"zzz: 1\n", ":1: unknown setting \"zzz\" (gpu-ledger --help lists them)"},
      {"a:\n  b:\n    c: 1\n", ":2: unknown setting \"a.b\" (gpu-ledger --help lists them)"},
      {"\n\nsample-interval: 5\n", ":3: sample-interval: \"5\" is not a duration (write 500ms, 10s, 1m30s)"},
      {"collector:\n  idle: maybe\n", ":2: collector.idle: \"maybe\" is neither true nor false"},
      {"enable-energy-estimation: 7\n", ":1: enable-energy-estimation: \"7\" is neither true nor false"},
      {"log-level: info\nlog-level: warn\n", ":2: log-level: given twice"},
      {"sample-interval: 1s\ndcgm-update-frequency: 2s\n", ":2: dcgm-update-frequency: given twice"},
      {"log-level: [info]\n", ":1: log-level: needs one plain value"},
      {"log-level: {a: b}\n", ":1: unknown setting \"log-level.a\" (did you mean log-level?)"},
      {"listen-address:\n  - :1\n  - [a]\n", ":3: listen-address: every element must be a plain value"},
      {"listen-address: []\n", ":1: listen-address: needs at least one address (write :9400)"},
      {"config: other.yaml\n", ":1: config: a config file cannot name another"},
      {"- a\n- b\n", ":1: must be settings, one \"name: value\" a line"},
      {"just words\n", ":1: must be settings, one \"name: value\" a line"},
      {"[a]: b\n", ":1: a setting's name must be a plain word"},
      {"backend: cuda\n", ":1: backend: \"cuda\" is not one of auto, nvml, dcgm or sim"},
      {"sample-interval: 3s\nidle-interval: 2s\n", ":2: idle-interval: 2s is shorter than "},
  };
  for (const auto& [text, message] : cases) {
    const ConfigFile file(text);
    EXPECT_THAT(error_of({file.flag()}), testing::StartsWith(file.path() + message)) << text;
  }
}

TEST(ConfigFileText, BrokenYamlNamesFileAndLine) {
  for (const char* text : {"log-level: info\nx: [1, 2\n", "a: b: c\n", "\tlog-level: info\n", "a: *nowhere\n"}) {
    const ConfigFile file(text);
    EXPECT_THAT(error_of({file.flag()}), testing::MatchesRegex(file.path() + ":[0-9]+: not valid YAML: .+")) << text;
  }
  const ConfigFile endless(",i");
  EXPECT_THAT(error_of({endless.flag()}), testing::StartsWith(endless.path() + ":1: "));
  const ConfigFile two("log-level: info\n---\nlog-level: warn\n");
  EXPECT_EQ(error_of({two.flag()}), two.path() + ":2: more than one YAML document");
}

TEST(ConfigFileText, UnreadableFile) {
  EXPECT_EQ(error_of({"--config=/nowhere/x.yaml"}), "--config: cannot read /nowhere/x.yaml: No such file or directory");
  EXPECT_EQ(error_of({}, {{"GPU_LEDGER_CONFIG", "/"}}), "GPU_LEDGER_CONFIG: cannot read /: Is a directory");
  const ConfigFile big(std::string(1 << 20, '#') + "\n");
  EXPECT_EQ(error_of({big.flag()}), "--config: cannot read " + big.path() + ": larger than 1048576 bytes");
}

}  // namespace
}  // namespace gpuledger::app
