// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>

#include "attribute/estimate/window.h"

namespace gpuledger::attribute {

// The mean of the newest window and those before it in which the same processes were in the same phases, at most `most`
// windows. In one window a share of time may differ from the usual share by chance; in the mean of several it does so
// less. Its messages are the sums of theirs.
Window mean_window(const std::deque<Window>& history, const Window& newest, size_t most);

}  // namespace gpuledger::attribute
