// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "model/identity.h"

namespace gpuledger::attribute {

// Equal for processes that are expected to do the same work: replicas, steps of a job, a restarted pod. 0 if not
// known: two programs started by hand may have only the interpreter in common.
uint64_t kin_of(const ProcessIdentity& identity);

}  // namespace gpuledger::attribute
