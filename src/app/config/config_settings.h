// SPDX-License-Identifier: Apache-2.0
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
  kList,    // may be repeated, or separated by commas
  kSwitch,  // --name, --no-name, --name=false
};

// kGroupWords and kGroupTitles are in this order.
enum class SettingGroup {
  kServing,
  kPush,
  kSampling,
  kLedger,
  kSource,
  kKubernetes,
  kContainers,
  kCollectors,
  kBill,
  kProgram
};
inline constexpr std::string_view kGroupWords[] = {"serving",    "push",       "sampling",   "ledger", "source",
                                                   "kubernetes", "containers", "collectors", "bill",   "program"};
inline constexpr std::string_view kGroupTitles[] = {"What is served, and where",
                                                    "Push to a receiver of Prometheus' remote write",
                                                    "How often",
                                                    "Who pays",
                                                    "Where the numbers come from",
                                                    "Kubernetes",
                                                    "Containers outside Kubernetes",
                                                    "Collectors",
                                                    "The bill",
                                                    "The program"};

// How a row fills its member of Config.
struct SettingMember {
  // Checks and stores the value. One element, except for lists.
  Status (*apply)(const std::vector<std::string>& values, Config& config);
  bool (*same)(const Config& a, const Config& b);
  void (*take)(Config& to, const Config& from);
  std::span<const std::string_view> words = {};  // the only values; empty: any that apply takes
};

// When a change of the config file takes effect. Code that uses a live setting updates it in reload() of the command
// serve.
enum class SettingEffect { kRestart, kLive };

// One row of THE table of settings. Flags, environment, config file, --help, docs/settings.md and the man page are made
// from it: a new setting is added here and in Config, nowhere else.
struct Setting {
  std::string_view name;  // of the flag, without dashes
  SettingGroup group;
  SettingForm form = SettingForm::kValue;
  std::string_view metavar;
  std::string_view default_text;  // as a user writes it; empty: none
  std::string_view help;
  SettingMember member;
  SettingEffect effect = SettingEffect::kRestart;
  std::string_view command = {};  // its only commands, separated by blanks; empty: all
};
std::span<const Setting> settings();

// Names of the exporters that this program replaces.
struct OlderName {
  std::string_view name;
  bool environment;  // a variable; otherwise a flag
  std::string_view setting;
  std::string_view stands_for;  // for help
  SettingForm form;
  Result<std::string> (*translate)(std::string_view value);  // to the setting's value
};
std::span<const OlderName> older_names();

const Setting* find_setting(std::string_view name);
// Whether the setting is of this command alone, or of it and few others.
bool is_of_command(const Setting& setting, std::string_view command);
// "top", "top or job"
std::string commands_of(const Setting& setting);
bool takes_setting(const Command& command, const Setting& setting);
const OlderName* find_older_flag(std::string_view name);

// collector.dcgm-modern: GPU_LEDGER_COLLECTOR_DCGM_MODERN
std::string environment_name(std::string_view setting_name);

}  // namespace gpuledger::app
