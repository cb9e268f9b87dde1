#include "sample/nvml/nvml_calls.h"

namespace gpuledger::nvml {

void Calls::finish(const char* symbol, Nanoseconds took, Return result) {
  durations_[symbol].observe(std::chrono::duration<double>(took).count());
  if (means_driver_gone(result) && driver_gone_.empty()) driver_gone_ = describe(symbol, result);
}

}  // namespace gpuledger::nvml
