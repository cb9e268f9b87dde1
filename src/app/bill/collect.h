// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "app/bill/bill_books.h"
#include "app/bill/bill_query.h"
#include "app/bill/server.h"

namespace gpuledger::app {

// How many of the times were asked for.
using BillProgress = std::function<void(size_t done, size_t all)>;

// Asks for all counters at the span's begin, at every step and at its end, and for all scrapes of a node in a step in
// which it came, went or restarted.
Result<BillBooks> collect_books(const BillAsk& ask, const BillQuery& query, const BillProgress& progress = {});

}  // namespace gpuledger::app
