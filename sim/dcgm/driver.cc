// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <cstdlib>

#include "engine.h"

namespace gpuledger::sim_dcgm {
namespace {

// The simulated driver in the folder beside this library. If the program has loaded it too, both see one node.
std::string driver_path() {
  if (const char* given = std::getenv("DCGM_SIM_NVML")) return given;
  Dl_info self{};
  if (!dladdr(reinterpret_cast<const void*>(&driver_path), &self) || !self.dli_fname) return {};
  const std::string path = self.dli_fname;
  return path.substr(0, path.find_last_of('/')) + "/../libnvidia-ml.so.1";
}

}  // namespace

bool Driver::open() {
  if (library_) return true;
  auto loaded = nvml::load_library(driver_path());
  if (!loaded || loaded->functions.nvmlInit_v2.pointer() != nvml::kSuccess) return false;
  library_ = std::make_unique<nvml::Library>(std::move(*loaded));
  unsigned count = 0;
  fn().nvmlDeviceGetCount_v2.pointer(&count);
  fn().nvmlEventSetCreate.pointer(&events_);
  for (unsigned i = 0; i < count; ++i) {
    nvml::Device device = nullptr;
    fn().nvmlDeviceGetHandleByIndex_v2.pointer(i, &device);
    fn().nvmlDeviceRegisterEvents.pointer(device, nvml::kEventTypeXid, events_);
    devices_.push_back(device);
  }
  return true;
}

void Driver::close() {
  if (!library_) return;
  fn().nvmlShutdown.pointer();
  library_.reset();
  devices_.clear();
}

dcgm::Return Driver::translate(nvml::Return result) {
  switch (result) {
    case nvml::kSuccess: return dcgm::kOk;
    case nvml::kNotSupported: return dcgm::kNotSupported;
    case nvml::kNoPermission: return dcgm::kNoPermission;
    case nvml::kNotFound: return dcgm::kNoData;
    case nvml::kGpuIsLost: return dcgm::kGpuIsLost;
    case nvml::kUninitialized:
    case nvml::kDriverNotLoaded: return dcgm::kNvmlNotLoaded;
    default: return dcgm::kNvmlError;
  }
}

nvml::Return Driver::set_accounting(unsigned gpu) {
  using Set = nvml::Return (*)(nvml::Device, unsigned);
  const auto set = reinterpret_cast<Set>(library_->handle.symbol("nvmlDeviceSetAccountingMode"));
  return set ? set(device(gpu), 1) : nvml::kFunctionNotFound;
}

std::vector<MigEntity> Driver::instances() const {
  std::vector<MigEntity> found;
  for (unsigned gpu = 0; gpu < devices_.size(); ++gpu) {
    unsigned most = 0;
    fn().nvmlDeviceGetMaxMigDeviceCount.pointer(devices_[gpu], &most);
    for (unsigned i = 0; i < most; ++i) {
      nvml::Device mig = nullptr;
      unsigned id = 0;
      if (fn().nvmlDeviceGetMigDeviceHandleByIndex.pointer(devices_[gpu], i, &mig) != nvml::kSuccess) continue;
      if (fn().nvmlDeviceGetGpuInstanceId.pointer(mig, &id) == nvml::kSuccess) found.push_back({gpu, id});
    }
  }
  return found;
}

std::vector<uint64_t> Driver::new_xids(unsigned gpu) {
  nvml::EventData event{};
  for (int i = 0; i < 64 && fn().nvmlEventSetWait_v2.pointer(events_, &event, 0) == nvml::kSuccess; ++i) {
    for (unsigned at = 0; at < devices_.size(); ++at) {
      if (devices_[at] == event.device) xids_[at].push_back(event.eventData);
    }
  }
  return std::exchange(xids_[gpu], {});
}

}  // namespace gpuledger::sim_dcgm
