// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/carried_simulator.h"

// GPU_LEDGER_SIMULATOR is the path of the built libnvidia-ml.so.1; only src/app/CMakeLists.txt sets it.
#ifdef GPU_LEDGER_SIMULATOR
__asm__(
    ".pushsection .rodata.gl_simulator,\"a\",%progbits\n"
    ".balign 16\n"
    ".globl gl_simulator_begin\n"
    ".hidden gl_simulator_begin\n"
    "gl_simulator_begin:\n"
    ".incbin \"" GPU_LEDGER_SIMULATOR
    "\"\n"
    ".globl gl_simulator_end\n"
    ".hidden gl_simulator_end\n"
    "gl_simulator_end:\n"
    ".popsection\n");

extern "C" {
extern const char gl_simulator_begin[] __attribute__((visibility("hidden")));
extern const char gl_simulator_end[] __attribute__((visibility("hidden")));
}
#endif

namespace gpuledger::app {

std::string_view carried_simulator() {
#ifdef GPU_LEDGER_SIMULATOR
  return {gl_simulator_begin, gl_simulator_end};
#else
  return {};
#endif
}

}  // namespace gpuledger::app
