// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gpuledger {

// Whole numbers in proportion to the weights that add up to the total: rounded down; the remaining units go to the
// largest remainders, the first of equals first. All weights 0: equal parts. At least one weight.
std::vector<uint64_t> split_exactly(uint64_t total, std::span<const uint64_t> weights);

}  // namespace gpuledger
