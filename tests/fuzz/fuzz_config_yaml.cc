// SPDX-License-Identifier: Apache-2.0
// What must hold of a config file whatever is in it: settings that exist, each with a value, or one line that says
// where. So of a list of prices.

#include <cstdint>
#include <string>

#include "app/bill/prices.h"
#include "app/config/config_given.h"
#include "invariant.h"

using gpuledger::fuzz::require;
using namespace gpuledger::app;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (const auto rows = parse_price_list({reinterpret_cast<const char*>(bytes), size}); !rows) {
    const std::string& message = rows.error().message;
    require(message.starts_with("line ") || message.starts_with("NUL"), "an error says where");
    require(message.find('\n') == message.npos, "an error is one line");
  }
  const auto given = parse_yaml_settings({reinterpret_cast<const char*>(bytes), size}, "file");
  if (!given) {
    require(given.error().message.starts_with("file:"), "an error says where");
    return 0;
  }
  for (const auto& [setting, value] : *given) {
    require(setting != nullptr && find_setting(setting->name) == setting, "a setting that exists");
    require(setting->form == SettingForm::kList || value.values.size() == 1, "one value, but for lists");
    Config config;
    if (!value.values.empty()) (void)setting->member.apply(value.values, config);
  }
  return 0;
}
