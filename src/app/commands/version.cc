// SPDX-License-Identifier: Apache-2.0
#include "app/config/config_help.h"

namespace gpuledger::app {

std::string version_command(const ConfigSources& sources, const std::string& /*argument*/) {
  return write_version(sources);
}

}  // namespace gpuledger::app
