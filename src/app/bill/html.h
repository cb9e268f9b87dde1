// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "app/bill/statement.h"

namespace gpuledger::app {

// The bill as one HTML file without anything from outside: for a browser, light or dark, and for paper.
std::string bill_html(const Statement& statement);

}  // namespace gpuledger::app
