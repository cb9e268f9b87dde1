// SPDX-License-Identifier: Apache-2.0
#include "exports.h"

// Uses every function of the lists once. A function without a definition is then an error at link time, not a missing
// symbol at run time.
namespace gpuledger::sim {

extern const void* const kEveryExport[];
const void* const kEveryExport[] = {
#define NVML_FUNCTION(need, result, name, parameters) reinterpret_cast<const void*>(&nvml::name),
#include "nvml_client_functions.inc"
#include "sample/nvml/nvml_functions.inc"
#undef NVML_FUNCTION
};

}  // namespace gpuledger::sim
