// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/config/config.h"

// Completion of commands, flags and their values for shells, generated from the tables of settings and commands.
namespace gpuledger::app {

std::string write_bash_completion(std::span<const Command> commands);
std::string write_zsh_completion(std::span<const Command> commands);
std::string write_fish_completion(std::span<const Command> commands);

}  // namespace gpuledger::app
