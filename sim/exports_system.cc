// SPDX-License-Identifier: Apache-2.0
#include <cctype>
#include <cstring>

#include "node.h"

// Opening the driver, finding GPUs.
using namespace gpuledger::sim;

namespace gpuledger::nvml {
namespace {

Return open_driver(const char* call) {
  Node& node = Node::get();
  {
    std::lock_guard lock(node.mutex());
    node.prepare();  // only the scenario knows how slow this is
  }
  node.delay(call);
  std::lock_guard lock(node.mutex());
  return node.init(call);
}

Return count_gpus(const char* call, unsigned* count) {
  return on_driver(call, [&](Node& node) {
    if (!count) return kInvalidArgument;
    *count = static_cast<unsigned>(node.scenario().gpus.size());
    return kSuccess;
  });
}

Return gpu_by_index(const char* call, unsigned index, Device* device) {
  return on_driver(call, [&](Node& node) {
    if (!device || index >= node.scenario().gpus.size()) return kInvalidArgument;
    if (node.lost(index)) return kGpuIsLost;
    *device = node.handle(index);
    return kSuccess;
  });
}

// The driver takes "0000:07:00.0", "00000000:07:00.0" and either case.
bool same_bus_id(const std::string& known, std::string asked) {
  for (char& c : asked) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (asked.size() + 4 == known.size()) asked = "0000" + asked;
  return asked == known;
}

}  // namespace

extern "C" {

Return nvmlInit_v2(void) {
  return open_driver(__func__);
}

Return nvmlInit(void) {
  return open_driver(__func__);
}

Return nvmlInitWithFlags(unsigned) {
  return open_driver(__func__);
}

Return nvmlShutdown(void) {
  Node& node = Node::get();
  node.delay(__func__);
  std::lock_guard lock(node.mutex());
  return node.shutdown();
}

const char* nvmlErrorString(Return result) {
  switch (result) {
    case kSuccess: return "The operation was successful";
    case kUninitialized: return "Uninitialized";
    case kInvalidArgument: return "Invalid Argument";
    case kNotSupported: return "Not Supported";
    case kNoPermission: return "Insufficient Permissions";
    case kNotFound: return "Not Found";
    case kInsufficientSize: return "Insufficient Size";
    case kDriverNotLoaded: return "Driver Not Loaded";
    case kTimeout: return "Timeout";
    case kIrqIssue: return "Interrupt Request Issue";
    case kLibraryNotFound: return "NVML Shared Library Not Found";
    case kFunctionNotFound: return "Function Not Found";
    case kGpuIsLost: return "GPU is lost";
    case kResetRequired: return "GPU requires restart";
    case kLibRmVersionMismatch: return "RM has detected an NVML/RM version mismatch";
    case kInUse: return "In use by another client";
    case kNoData: return "No data";
    case kArgumentVersionMismatch: return "Argument version mismatch";
    default: return "Unknown Error";
  }
}

Return nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return on_driver(__func__, [&](Node& node) { return copy_text(node.driver_version(), version, length); });
}

Return nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return on_driver(__func__, [&](Node& node) {
    return copy_text(std::to_string(node.scenario().cuda / 1000) + "." + node.driver_version(), version, length);
  });
}

Return nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return on_driver(__func__, [&](Node& node) {
    if (!version) return kInvalidArgument;
    *version = node.scenario().cuda;
    return kSuccess;
  });
}

Return nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

Return nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  return on_driver(__func__, [&](Node& node) {
    std::vector<Life> lives;
    for (const ProcessSpec& process : node.scenario().processes) append_lives(process, node.now(), &lives);
    for (const Life& life : lives) {
      if (life.pid == pid) return copy_text(life.process->command, name, length);
    }
    return kNotFound;
  });
}

// No GPU is excluded here.
Return nvmlGetExcludedDeviceCount(unsigned* count) {
  return on_driver(__func__, [&](Node&) {
    if (!count) return kInvalidArgument;
    *count = 0;
    return kSuccess;
  });
}

Return nvmlDeviceGetCount_v2(unsigned* count) {
  return count_gpus(__func__, count);
}

Return nvmlDeviceGetCount(unsigned* count) {
  return count_gpus(__func__, count);
}

Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  return gpu_by_index(__func__, index, device);
}

Return nvmlDeviceGetHandleByIndex(unsigned index, Device* device) {
  return gpu_by_index(__func__, index, device);
}

Return nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
  return on_driver(__func__, [&](Node& node) {
    if (!uuid || !device) return kInvalidArgument;
    for (unsigned i = 0; i < node.scenario().gpus.size(); ++i) {
      const GpuSpec& gpu = node.scenario().gpus[i];
      int instance = gpu.uuid == uuid ? -1 : -2;
      for (size_t m = 0; m < gpu.instances.size(); ++m) {
        const MigSpec& mig = gpu.instances[m];
        if (mig.uuid == uuid && node.now() >= mig.from && node.now() < mig.until) instance = static_cast<int>(m);
      }
      if (instance == -2) continue;
      if (node.lost(i)) return kGpuIsLost;
      *device = node.handle(i, instance);
      return kSuccess;
    }
    return kNotFound;
  });
}

Return nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, Device* device) {
  return on_driver(__func__, [&](Node& node) {
    if (!bus_id || !device) return kInvalidArgument;
    for (unsigned i = 0; i < node.scenario().gpus.size(); ++i) {
      if (!same_bus_id(node.scenario().gpus[i].pci_bus_id, bus_id)) continue;
      if (node.lost(i)) return kGpuIsLost;
      *device = node.handle(i);
      return kSuccess;
    }
    return kNotFound;
  });
}

}  // extern "C"

}  // namespace gpuledger::nvml
