// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "app/bill/statement.h"

namespace gpuledger::app {

// A name from outside, for HTML. One with characters that cannot be seen is shown as JSON writes it.
std::string html_name(std::string_view name);

// Bars by line, as SVG. A long bill shows its largest lines and the sum of the others.
std::string bill_chart(const Statement& statement);

// All colours and sizes.
extern const char* const kBillStyle;

}  // namespace gpuledger::app
