// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client_abi.h"

// The driver's functions as this library exports them: the same list that the product loads, and a list of functions
// that other clients call. A definition that does not match its line here does not compile; a missing one does not
// link.
namespace gpuledger::nvml {

#define NVML_FUNCTION(need, result, name, parameters) \
  extern "C" __attribute__((visibility("default"))) result name parameters;
#include "nvml_client_functions.inc"
#include "sample/nvml/nvml_functions.inc"
#undef NVML_FUNCTION

}  // namespace gpuledger::nvml
