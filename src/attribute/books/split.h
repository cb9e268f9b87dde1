// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"

namespace gpuledger::attribute {

// Splits total into parts proportional to the weights. Their sum is exactly total (largest remainder;
// ties go to the earlier part). Weights are not negative; all zero means equal parts.
// total >= 0 and weights not empty.
std::vector<Energy> split_exactly(Energy total, std::span<const uint64_t> weights);

}  // namespace gpuledger::attribute
