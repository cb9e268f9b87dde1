// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>

#include "attribute/estimate/window.h"

namespace gpuledger::attribute {

// The mean of the newest window and those before it in which the same processes were in the same phases, at most `most`
// windows. Its messages are the sums of theirs, so that it is compared with the signatures from before these windows.
// After a change the signatures follow the readings within seconds, so that no single window looks wrong.
Window mean_window(const std::deque<Window>& history, const Window& newest, size_t most);

}  // namespace gpuledger::attribute
