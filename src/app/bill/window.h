// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>

#include "app/bill/statement.h"
#include "base/result.h"

namespace gpuledger::app {

// The last full minute whose scrapes have arrived.
std::chrono::sys_seconds newest_end(std::chrono::sys_seconds now);

// A span of time as users of OpenCost write it: today, yesterday, week, lastweek (from Sunday), month, lastmonth; 30m,
// 12h, 7d, 2w; two times of RFC 3339 or two of Unix by a comma. UTC. As there, 7d is today and the six days before it,
// and 12h this hour and the eleven before it; 30m are the last 30 full minutes up to newest_end. The end may lie in the
// future.
Result<BillSpan> parse_window(std::string_view text, std::chrono::sys_seconds now);

}  // namespace gpuledger::app
