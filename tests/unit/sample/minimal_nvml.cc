// SPDX-License-Identifier: Apache-2.0
// A library with the required symbols and nothing else, to be loaded for real.
#include <cstring>

#include "sample/nvml/nvml_abi.h"

using namespace gpuledger::nvml;

extern "C" {

Return nvmlInit_v2() {
  return kSuccess;
}
Return nvmlShutdown() {
  return kSuccess;
}
Return nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 1;
  return kSuccess;
}
Return nvmlDeviceGetHandleByIndex_v2(unsigned, Device* device) {
  static int anchor;
  *device = reinterpret_cast<Device>(&anchor);
  return kSuccess;
}
Return nvmlDeviceGetUUID(Device, char* uuid, unsigned length) {
  std::strncpy(uuid, "GPU-minimal", length);
  return kSuccess;
}
}
