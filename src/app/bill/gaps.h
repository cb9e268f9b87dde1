// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "app/bill/bill_books.h"
#include "app/bill/bill_query.h"

namespace gpuledger::app {

// Says that a node lacks a time, in milliseconds. False: it is too short for that, and deserves a remark at the most.
bool add_gap(const BillQuery& query, BillBooks& books, const std::string& node, int64_t from, int64_t to,
             const std::string& why);

}  // namespace gpuledger::app
