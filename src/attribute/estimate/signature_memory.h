// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "model/sample.h"

// Without Eigen, which takes the compiler longer than all the rest: the books and the state file need no more than
// this.
namespace gpuledger::attribute {

// What a GPU shows in a window of time, as numbers of about one: power above the static watts over the power limit,
// then the activity of its parts in the order of Activity::Part.
inline constexpr int kFeatures = 1 + static_cast<int>(Activity::kParts);

// What is known of a signature, to be kept over a restart, the prior included.
struct SignatureMemory {
  std::array<double, kFeatures*(kFeatures + 1) / 2> precision{};
  std::array<double, kFeatures> shift{};
  double share = -1;  // below 0: not known
};

}  // namespace gpuledger::attribute
