// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "app/doctor/doctor.h"
#include "app/runtime/exact_time.h"
#include "base/capability.h"
#include "sample/switch_trace/trace_session.h"

namespace gpuledger::app {
namespace {

using Level = Finding::Level;
using switch_trace::TraceSession;

constexpr const char* kGain =
    "; with exact time, of processes that share a GPU, about half as many joules are booked to the wrong one";
constexpr const char* kPage = "; see docs/exact-time.md";

// Empty: the GPU can be traced.
std::string try_to_trace(const DeviceSample& device, const std::shared_ptr<switch_trace::DriverDoor>& door) {
  for (const ProcessSample& process : device.processes) {
    if (process.mps_client) return "MPS is in use, whose clients the trace cannot tell apart";
  }
  const auto address = switch_trace::parse_bus_address(device.description->pci_bus_id);
  if (!address.ok()) return address.error().message;
  auto session = TraceSession::open(door, *address);
  if (!session.ok()) return session.error().message + kGain;
  const RaisedSysAdmin raised;
  const Status started = (*session)->start();
  return started.ok() ? "" : started.error().message;
}

// By what is in the way; empty: nothing is.
std::map<std::string, std::string> gpus_by_trouble(const SampleBatch& batch,
                                                   const std::shared_ptr<switch_trace::DriverDoor>& door) {
  std::map<std::string, std::string> all;
  for (const DeviceSample& device : batch.devices) {
    if (!device.up) continue;
    std::string& gpus = all[try_to_trace(device, door)];
    gpus += (gpus.empty() ? "GPU " : ", ") + std::to_string(device.description->index);
  }
  return all;
}

}  // namespace

// Whoever insists is warned. With auto nothing is wrong, but it is said what is missing and what that would gain.
Findings check_exact_time(const Config& config, const std::string& library, const SampleBatch& batch) {
  if (config.exact_time == ExactTimeMode::kOff) {
    return {{Level::kOk, "exact time", std::string("off, by --exact-time=off") + kGain + kPage}};
  }
  const bool insisted = config.exact_time == ExactTimeMode::kOn;
  const Level missing = insisted ? Level::kWarn : Level::kOk;
  auto door = open_door(config, library);
  if (!door.ok()) return {{insisted ? Level::kFail : Level::kOk, "exact time", "off: " + door.error().message + kPage}};
  const bool permitted = config.backend == Backend::kSim || sys_admin_is_permitted();
  Findings findings;
  bool any = false;
  for (const auto& [trouble, gpus] : gpus_by_trouble(batch, *door)) {
    any = any || trouble.empty();
    if (!trouble.empty()) {
      findings.push_back({missing, "exact time", gpus + ": off: " + trouble + kPage});
    } else if (permitted || insisted) {
      findings.push_back({Level::kOk, "exact time", gpus + " can be traced"});
    } else {
      findings.push_back(
          {Level::kOk, "exact time",
           gpus + ": off, because the capability SYS_ADMIN is missing (Helm: exactTime.enabled)" + kGain + kPage});
    }
  }
  if (!any && insisted && !findings.empty()) findings.front().level = Level::kFail;
  if (any && insisted && !permitted) {
    findings.push_back(
        {Level::kWarn, "exact time",
         "without the capability SYS_ADMIN the driver hides the processes of other users, and exact time "
         "switches itself off when it meets one: add the capability (Helm: exactTime.enabled)"});
  }
  return findings;
}

}  // namespace gpuledger::app
