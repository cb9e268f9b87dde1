// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string_view>

#include "expose/view.h"

namespace gpuledger::expose {

using SeriesCount = std::map<std::string_view, size_t>;  // by collector
size_t sum_of(const SeriesCount& count);

// No fewer than the view gives: quickly told, and most nodes are far below any limit.
size_t most_series(const View& view);

// A little more than the exposition of the view takes, so that its text is not moved while it grows.
size_t expected_bytes(const View& view);

// Takes the smallest spenders out of the view's lists until there are at most --max-series. Processes, owners and what
// Kubernetes gave get equal room, and whoever needs less leaves the rest to the others. Joules of owners that go are
// added to the closed accounts, so that the books of every scrape balance. GPUs and the program itself always stay.
void keep_biggest(View& view, SeriesCount (*count_series)(const View&));

}  // namespace gpuledger::expose
