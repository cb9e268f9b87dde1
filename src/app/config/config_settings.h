#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/config/config.h"
#include "base/result.h"

namespace gpuledger::app {

enum class SettingForm {
  kValue,   // --name VALUE
  kList,    // may be given several times, or with commas
  kSwitch,  // --name, --no-name, --name=false
};

enum class SettingGroup { kServing, kSampling, kLedger, kSource, kKubernetes, kContainers, kCollectors, kProgram };

// One row of THE table of settings. Flags, environment, config file, --help, docs/settings.md and the man page are all
// made from it, so a setting is added here and in Config, and nowhere else.
struct Setting {
  std::string_view name;  // of the flag, without dashes
  SettingGroup group;
  SettingForm form = SettingForm::kValue;
  std::string_view metavar;
  std::string_view default_text;  // as a user would write it; empty: none
  std::string_view help;
  // Checks the value and puts it into the Config. One element, but for lists.
  Status (*apply)(const std::vector<std::string>& values, Config& config);
};
std::span<const Setting> settings();

// Names of the exporters whose place this program takes.
struct OlderName {
  std::string_view name;
  bool environment;  // a variable; otherwise a flag
  std::string_view setting;
  std::string_view stands_for;  // for people
  SettingForm form;
  Result<std::string> (*translate)(std::string_view value);  // to the setting's own words
};
std::span<const OlderName> older_names();

std::string_view group_title(SettingGroup group);
const Setting* find_setting(std::string_view name);
const OlderName* find_older_flag(std::string_view name);

// collector.dcgm-modern: GPU_LEDGER_COLLECTOR_DCGM_MODERN
std::string environment_name(std::string_view setting_name);

}  // namespace gpuledger::app
