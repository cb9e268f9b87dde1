// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gpuledger::app {

// The simulated driver's file (sim/), which the static release carries so that --backend=sim works from the one binary.
// Empty in other builds, which find it in their build folder. It is carried as bytes and loaded as NVIDIA's library is,
// never linked.
std::string_view carried_simulator();

}  // namespace gpuledger::app
