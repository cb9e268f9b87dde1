// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "sample/nvml/nvml_abi.h"

namespace gpuledger::nvml {

Code code_of(Return result);

// "nvmlInit_v2: driver not loaded (NVML 9)"
std::string describe(const char* symbol, Return result);

// What to do if the start fails; empty if there is nothing to add to the description.
std::string advice_for(Return result);

// The kernel module is gone (unloaded, reloaded, upgraded): the library must be loaded again.
bool means_driver_gone(Return result);

// This GPU is lost.
bool means_gpu_gone(Return result);

// No failure: this GPU or driver lacks it.
bool means_unsupported(Return result);

}  // namespace gpuledger::nvml
