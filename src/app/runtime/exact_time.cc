// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/exact_time.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/capability.h"
#include "base/log.h"
#include "sample/switch_trace/exact_time_source.h"

namespace gpuledger::app {
namespace {

namespace fs = std::filesystem;
constexpr const char* kDriverCapabilities = "/driver/nvidia/capabilities";  // below --proc-root

// The driver shows every MIG instance as a folder: gpu0/mig/gi1.
bool any_mig_instance(const std::string& proc_root) {
  std::error_code failed;
  for (const auto& gpu : fs::directory_iterator(proc_root + kDriverCapabilities, failed)) {
    for (const auto& entry : fs::directory_iterator(gpu.path() / "mig", failed)) {
      if (entry.path().filename().string().starts_with("gi")) return true;
    }
  }
  return false;
}

}  // namespace

bool wants_exact_time(const Config& config) {
  if (config.exact_time != ExactTimeMode::kAuto) return config.exact_time == ExactTimeMode::kOn;
  return config.backend == Backend::kSim || sys_admin_is_permitted();
}

Result<std::shared_ptr<switch_trace::DriverDoor>> open_door(const Config& config, const std::string& library) {
  if (config.backend == Backend::kSim) return switch_trace::open_library_door(library);
  return switch_trace::open_system_door();
}

Result<std::unique_ptr<GpuSource>> add_exact_time(const Config& config, const std::string& library,
                                                  std::unique_ptr<GpuSource> source, const Clock& clock) {
  if (!wants_exact_time(config)) {
    if (config.exact_time == ExactTimeMode::kAuto) log_debug("exact time is off: no capability SYS_ADMIN");
    return source;
  }
  switch_trace::ExactTimeOptions options;
  options.budget = config.exact_time_budget;
  options.insist = config.exact_time == ExactTimeMode::kOn;
  auto door = open_door(config, library);
  if (!door.ok() && options.insist) return door.error();
  if (!door.ok()) {
    log_debug("exact time is off: " + door.error().message);
    return source;
  }
  return std::unique_ptr<GpuSource>(
      std::make_unique<switch_trace::ExactTimeSource>(std::move(source), std::move(*door), options, clock));
}

void lay_aside_rights_for_exact_time(const Config& config) {
  const bool mig = std::getenv("NVIDIA_MIG_MONITOR_DEVICES") != nullptr || any_mig_instance(config.proc_root);
  if (wants_exact_time(config) && !mig) lay_aside_sys_admin();
}

}  // namespace gpuledger::app
