// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attribute/estimate/claims.h"
#include "attribute/estimate/estimator.h"

namespace gpuledger::attribute {

// Shares the step's joules out by time alone: every second on the GPU costs the same. Nobody caught: equal parts.
void charge_by_shares(const Step& step, Claims& claims);

}  // namespace gpuledger::attribute
