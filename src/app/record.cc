#include "app/commands.h"

namespace gpuledger::app {

Status record(const Config&) {
  return Error{Code::kNotSupported, "record: not in this build"};
}

}  // namespace gpuledger::app
