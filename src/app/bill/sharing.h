// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace gpuledger::app {

using Wide = __int128;

// Whole numbers in proportion to the weights, which add up to the amount. Weights are 0 or more, one of them more.
std::vector<int64_t> share_out(int64_t amount, const std::vector<double>& weights);

// Each part in units of `unit`, rounded so that they add up to `total`: what rounding leaves goes to those with the
// largest remainders, what is left then to the largest part.
std::vector<int64_t> round_parts(const std::vector<Wide>& parts, int64_t unit, int64_t total);

}  // namespace gpuledger::app
