// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/config/config.h"

namespace gpuledger::app {

// THE table of commands. The first is the default.
std::span<const Command> commands();

}  // namespace gpuledger::app
