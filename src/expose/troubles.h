// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "expose/view.h"

namespace gpuledger::expose {

// What is not fine with a GPU, in words for people; empty where all is well or the GPU cannot say.
// now: since 1970. An Xid is trouble for a day: what it was is in the metrics for good.
std::vector<std::string> list_troubles(const DeviceSeries& device, Nanoseconds now);

}  // namespace gpuledger::expose
