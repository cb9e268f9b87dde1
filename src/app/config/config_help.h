// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/config/config.h"

// The texts about settings and commands, generated from their tables, so that they are correct.
namespace gpuledger::app {

using Commands = std::span<const Command>;
std::string write_help(Commands commands);          // --help, at most 100 columns
std::string write_settings_doc(Commands commands);  // docs/settings.md
std::string write_man_page(Commands commands);      // docs/gpu-ledger.1
std::string write_command_help(const Command& command);
std::string write_version(const ConfigSources& sources);  // --version, one line

}  // namespace gpuledger::app
