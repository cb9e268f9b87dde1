// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "app/top/books.h"
#include "app/top/text.h"
#include "app/top/view.h"

namespace gpuledger::app::top {

// The head and a line for each GPU, or for the chosen one; at most `most` lines below the head, the last of which then
// says how many are left out. bars: beside the numbers, where there is room.
std::vector<Line> write_gpus(const Books& books, const View& view, size_t columns, size_t most, bool bars);

}  // namespace gpuledger::app::top
