// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "expose/catalog.h"

namespace gpuledger::expose {

// Leaves out the accounts with the least energy until the families have at most --max-series. Processes, owners and
// allocations (with pods) get equal room; room that one of them does not need is for the others. Joules of owners that
// are left out are added to the closed accounts, so that the books balance in every scrape. GPUs and the program itself
// always stay.
void keep_biggest(View& view, std::span<const Family* const> families);

}  // namespace gpuledger::expose
