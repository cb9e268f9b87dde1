// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/config/config.h"
#include "app/config/config_settings.h"
#include "base/result.h"

namespace gpuledger::app {

// One setting as given, not yet checked.
struct Given {
  std::string origin;  // for messages, as the user wrote: "--log-level", "HTTP_PORT", "x.yaml:3: log-level"
  std::vector<std::string> values;
};
using GivenSettings = std::map<const Setting*, Given>;

inline Error wrong(std::string message) {
  return {Code::kMalformed, std::move(message)};
}

struct Arguments {
  const Command* command = nullptr;  // null: none was named
  std::string argument;              // of the command
  bool help = false;
  bool version = false;
  GivenSettings given;
};

// Accepts --name=value, --name value and Go's single dash. The last value wins; lists are appended.
Result<Arguments> parse_arguments(const std::vector<std::string>& arguments, std::span<const Command> commands);

// Adds settings that `given` does not have yet, so that the order of calls is the precedence: GPU_LEDGER_..., then the
// older names. Empty variables count as not set.
void add_environment(const std::map<std::string, std::string>& environment, GivenSettings& given);
Status add_older_environment(const std::map<std::string, std::string>& environment, GivenSettings& given);
std::vector<std::string> unknown_environment(const std::map<std::string, std::string>& environment);

// Parses the config file; `path` is for messages. One mapping of the same names; "collector: {dcgm: false}" equals
// "collector.dcgm: false"; null is not set.
Result<GivenSettings> parse_yaml_settings(const std::string& text, const std::string& path);

// The end of a message about an unknown name: " (did you mean --log-level?)".
std::string suggestion(std::string_view name, std::string_view prefix);

}  // namespace gpuledger::app
