// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/bill/statement.h"
#include "app/config/config.h"
#include "base/result.h"

namespace gpuledger::app {

// The span that the settings ask for. One that is not over ends a little before now.
Result<BillSpan> bill_span(const Config& config, std::chrono::sys_seconds now);
// When a span with an end of its own is over, if that is to come.
std::optional<std::chrono::sys_seconds> end_to_come(const Config& config, std::chrono::sys_seconds now);

// --step, or what fits the span.
Result<std::chrono::seconds> bill_step(const Config& config, const BillSpan& span);

}  // namespace gpuledger::app
