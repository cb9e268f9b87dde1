// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

namespace gpuledger {

const char* version() {
  return GPU_LEDGER_VERSION;
}

}  // namespace gpuledger
