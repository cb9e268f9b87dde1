// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attribute/estimate/claims.h"
#include "attribute/estimate/estimator.h"

namespace gpuledger::attribute {

// Divides the step's joules by time alone: every GPU second costs the same. Without samples: equal parts.
void charge_by_shares(const Step& step, Claims& claims);

}  // namespace gpuledger::attribute
