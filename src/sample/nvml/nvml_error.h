// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "sample/nvml/nvml_abi.h"

namespace gpuledger::nvml {

Code code_of(Return result);

// "nvmlInit_v2: driver not loaded (NVML 9)"
std::string describe(const char* symbol, Return result);

// What a person can do about a failing start; empty where nothing better than the description is known.
std::string advice_for(Return result);

// The library lost its kernel module (unloaded, reloaded, upgraded): only loading it anew helps.
bool means_driver_gone(Return result);

// This one GPU answers nothing any more.
bool means_gpu_gone(Return result);

// Not a failure: this GPU or driver never does it.
bool means_unsupported(Return result);

}  // namespace gpuledger::nvml
