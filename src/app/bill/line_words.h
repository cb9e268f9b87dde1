// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "app/bill/statement.h"

namespace gpuledger::app {

// A name in every output: owner, no_group, unknown, nobody.
std::string_view kind_name(LineKind kind);
// What a line is for, for people: "research", "container: triton", "nobody: idle".
std::string line_name(const BillLine& line);
// The site, or the server if the site has no name.
std::string site_title(const Statement& statement);
// That the span is not over, and until when the bill counts. Empty: it is over.
std::string not_over_text(const Statement& statement);
// Whether a price was given: without one there is no cost, rather than a cost of 0.
bool has_cost(const Statement& statement);
// Of all models, with and without a price. Empty: not known, or in other lines.
std::optional<double> held_gpu_hours(const BillLine& line);

}  // namespace gpuledger::app
