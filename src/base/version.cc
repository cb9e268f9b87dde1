#include "base/version.h"

namespace gpuledger {

const char* version() {
  return GPU_LEDGER_VERSION;
}

}  // namespace gpuledger
