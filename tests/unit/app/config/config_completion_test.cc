// SPDX-License-Identifier: Apache-2.0
#include "app/config/config_completion.h"

#include <gmock/gmock.h>

#include "app/config/config_settings.h"
#include "config_reading.h"

namespace gpuledger::app {
namespace {

using testing::HasSubstr;

// That the shells understand them is for tests/e2e/cli_test.py.
TEST(Completion, KnowsEveryCommandAndSetting) {
  const std::string bash = write_bash_completion(commands());
  const std::string zsh = write_zsh_completion(commands());
  const std::string fish = write_fish_completion(commands());
  for (const Command& command : commands()) {
    for (const std::string& script : {bash, zsh, fish}) EXPECT_THAT(script, HasSubstr(command.name));
  }
  for (const Setting& setting : settings()) {
    const std::string name(setting.name);
    EXPECT_THAT(bash, HasSubstr("--" + name));
    EXPECT_THAT(zsh, HasSubstr("--" + name));
    EXPECT_THAT(fish, HasSubstr("-l " + name + " "));
  }
}

TEST(Completion, KnowsTheValues) {
  EXPECT_THAT(write_bash_completion(commands()), HasSubstr("--backend) words='auto nvml dcgm sim'"));
  EXPECT_THAT(write_zsh_completion(commands()), HasSubstr(":NAME:(auto nvml dcgm sim)'"));
  EXPECT_THAT(write_fish_completion(commands()), HasSubstr("-l backend -x -a 'auto nvml dcgm sim'"));
  EXPECT_THAT(write_bash_completion(commands()), HasSubstr("--collector.preset) words='compatible lean'"));
}

}  // namespace
}  // namespace gpuledger::app
