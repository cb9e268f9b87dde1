// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "app/top/feed.h"
#include "base/file.h"

namespace gpuledger::app::top {

// Blocked in all later threads and read like keys: the terminal is restored before the exit.
UniqueFd take_signals();

// Shows the table until the user quits or a signal ends it. source: whose books, in words.
Status run_live(const Feed& feed, const std::string& source, int signals);

}  // namespace gpuledger::app::top
