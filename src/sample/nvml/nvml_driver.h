// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sample/nvml/nvml_events.h"
#include "sample/nvml/nvml_library.h"

namespace gpuledger::nvml {

// An initialised driver: shut down and unloaded with the last who holds it. The source holds it, and so does the
// thread of a GPU as long as a call of its own is under way: the library must not be unloaded, nor even shut down,
// under a running call. A call that never returns keeps the library for the rest of the program's life, which is
// better than a crash.
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
