// SPDX-License-Identifier: Apache-2.0
#include "app/config/config_completion.h"

namespace gpuledger::app {

std::string completion_command(const ConfigSources& sources, const std::string& shell) {
  if (shell == "zsh") return write_zsh_completion(sources.commands);
  if (shell == "fish") return write_fish_completion(sources.commands);
  return write_bash_completion(sources.commands);
}

}  // namespace gpuledger::app
