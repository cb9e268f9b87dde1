// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string_view>

#include "app/config/config_given.h"
#include "app/config/config_values.h"

namespace gpuledger::app {
namespace {

const std::string* find_variable(const std::map<std::string, std::string>& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() || found->second.empty() ? nullptr : &found->second;
}

}  // namespace

void add_environment(const std::map<std::string, std::string>& environment, GivenSettings& given) {
  for (const Setting& setting : settings()) {
    const std::string name = environment_name(setting.name);
    const std::string* value = find_variable(environment, name);
    if (value == nullptr) continue;
    const bool list = setting.form == SettingForm::kList;
    given.try_emplace(&setting, Given{name, list ? split_list(*value) : std::vector<std::string>{*value}});
  }
}

Status add_older_environment(const std::map<std::string, std::string>& environment, GivenSettings& given) {
  std::set<std::string_view> overruled;  // a name for two settings applies to both or to none
  for (const OlderName& older : older_names()) {
    if (!older.environment || overruled.contains(older.name)) continue;
    const Setting* setting = find_setting(older.setting);
    const std::string name(older.name);
    const std::string* value = find_variable(environment, name);
    if (value == nullptr) continue;
    if (given.contains(setting)) {
      overruled.insert(older.name);
      continue;
    }
    // Kubernetes sets HTTP_PORT=tcp://10.0.0.1:80 in every container if the namespace has a Service called "http".
    if (value->starts_with("tcp://")) continue;
    GL_TRY(translated, older.translate(*value).about(name));
    if (translated.empty()) continue;  // use the default
    given[setting] = {name, {std::move(translated)}};
  }
  return ok_status();
}

std::vector<std::string> unknown_environment(const std::map<std::string, std::string>& environment) {
  std::vector<std::string> unknown;
  for (const auto& [name, value] : environment) {
    if (!name.starts_with("GPU_LEDGER_")) continue;
    // Set by Kubernetes for a Service called gpu-ledger.
    if (name.starts_with("GPU_LEDGER_SERVICE_") || name.starts_with("GPU_LEDGER_PORT")) continue;
    bool known = false;
    for (const Setting& setting : settings()) known = known || environment_name(setting.name) == name;
    if (!known) unknown.push_back(name);
  }
  return unknown;
}

}  // namespace gpuledger::app
