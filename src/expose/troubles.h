// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "expose/view.h"

namespace gpuledger::expose {

// The problems of a GPU as text for people; empty: none are known.
// now: since 1970. An Xid is listed for a day; it stays in the metrics.
std::vector<std::string> list_troubles(const DeviceSeries& device, Nanoseconds now);

}  // namespace gpuledger::expose
