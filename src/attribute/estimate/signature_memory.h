// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "model/sample.h"

// Without Eigen, which is slow to compile: the books and the state file do not need it.
namespace gpuledger::attribute {

// The features of a window, numbers of about one: power above the static watts divided by the power limit, then the
// activity of the GPU's parts in the order of Activity::Part.
inline constexpr int kFeatures = 1 + static_cast<int>(Activity::kParts);

// The estimate of a signature, with its prior, as kept over a restart.
struct SignatureMemory {
  std::array<double, kFeatures*(kFeatures + 1) / 2> precision{};
  std::array<double, kFeatures> shift{};
  double share = -1;  // below 0: not known
};

}  // namespace gpuledger::attribute
