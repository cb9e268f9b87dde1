// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sample/nvml/nvml_events.h"
#include "sample/nvml/nvml_library.h"

namespace gpuledger::nvml {

// An initialized driver: shut down and unloaded by its last holder. The source holds it, and so does a GPU's thread
// while it is in a call: the library must not be unloaded or shut down during a call. A call that never returns keeps
// the library until the program exits, which is better than a crash.
struct Driver {
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  ~Driver() {
    xids.close(library.functions);
    library.functions.nvmlShutdown.pointer();
  }

  Library library;
  std::string version;
  XidEvents xids;
};

}  // namespace gpuledger::nvml
