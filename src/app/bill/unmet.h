// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "app/bill/make_statement.h"

namespace gpuledger::app {

// What a view asks for and nothing in the books has: a group, or a model that has a price. It may be misspelt. By the
// setting or parameter, with a line about it.
std::map<std::string, std::string> find_unmet(const BillBooks& books, const BillView& view);

}  // namespace gpuledger::app
