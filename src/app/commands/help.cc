// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "app/config/config_help.h"

namespace gpuledger::app {

std::string help_command(const ConfigSources& sources, const std::string& about) {
  const auto found = std::find_if(sources.commands.begin(), sources.commands.end(),
                                  [&](const Command& command) { return command.name == about; });
  return found == sources.commands.end() ? write_help(sources.commands) : write_command_help(*found);
}

}  // namespace gpuledger::app
