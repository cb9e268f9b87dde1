// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "model/identity.h"

namespace gpuledger::attribute {

// Equal for processes that are expected to do the same work: a replica, the next job of an array, a restarted pod. 0
// where nothing tells: two programs that a person starts by hand have only the interpreter in common.
uint64_t kin_of(const ProcessIdentity& identity);

}  // namespace gpuledger::attribute
