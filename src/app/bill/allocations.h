// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/bill/bill_books.h"
#include "app/bill/bill_query.h"

namespace gpuledger::app {

// Adds the hours that pods held GPUs between two times, and how much of them without use.
Status read_allocations(const BillAsk& ask, const BillQuery& query, const BillSpan& step, BillBooks& books);

}  // namespace gpuledger::app
