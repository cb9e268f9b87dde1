// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "sample/dcgm/dcgm_abi.h"

namespace gpuledger::dcgm {

Code code_of(Return result);

// "dcgmWatchFields: not watched (DCGM -16)"
std::string describe(const char* symbol, Return result);

// The engine is gone or was never there: only a new connection helps.
bool means_engine_gone(Return result);

// No failure: this engine or GPU lacks it.
bool means_unsupported(Return result);

}  // namespace gpuledger::dcgm
