// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "app/top/feed.h"
#include "base/file.h"

namespace gpuledger::app::top {

// Blocked in all later threads and read like keys: the terminal is restored before the exit.
UniqueFd take_signals();

// Shows the table until the user quits or a signal ends it. source, note: whose books, in words, as in Situation.
Status run_live(const Feed& feed, const std::string& source, const std::string& note, int signals);

}  // namespace gpuledger::app::top
