// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string_view>

#include "expose/view.h"

namespace gpuledger::expose {

using SeriesCount = std::map<std::string_view, size_t>;  // by collector
size_t sum_of(const SeriesCount& count);

// An upper bound of the view's series: fast, and most nodes are far below the limit.
size_t most_series(const View& view);

// A little more than the exposition takes, so that its text is not reallocated.
size_t expected_bytes(const View& view);

// Leaves out the entries with the least energy until there are at most --max-series. Processes, owners and allocations
// get equal room; room that one of them does not need is for the others. Joules of owners that are left out are added
// to the closed accounts, so that the books balance in every scrape. GPUs and the program itself always stay.
void keep_biggest(View& view, SeriesCount (*count_series)(const View&));

}  // namespace gpuledger::expose
