// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/sample.h"

namespace gpuledger {

// Removes every power that no GPU with that limit draws, from any source, and counts it. Before anything is made of it:
// it is shown, integrated and given to the estimator.
void leave_out_impossible_power(SampleBatch& batch);

}  // namespace gpuledger
