// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "attribute/books/device_book.h"
#include "model/ledger.h"
#include "model/policy.h"

namespace gpuledger::attribute {

// Drops and closes accounts after their retention, and the oldest ones above the limits of the rules. Their numbers are
// added to `folded`.
void fold_accounts(const std::vector<DeviceBook*>& books, Nanoseconds now, const BookingRules& rules,
                   FoldedAccounts& folded);

}  // namespace gpuledger::attribute
