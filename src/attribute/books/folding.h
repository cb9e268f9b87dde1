// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "attribute/books/device_book.h"
#include "model/ledger.h"
#include "model/policy.h"

namespace gpuledger::attribute {

// Gives up accounts whose time is over, and the oldest of those that are more than the rules allow. What was given up
// is added to `folded`.
void fold_accounts(const std::vector<DeviceBook*>& books, Nanoseconds now, const BookingRules& rules,
                   FoldedAccounts& folded);

}  // namespace gpuledger::attribute
