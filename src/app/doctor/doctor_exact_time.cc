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

// Empty: the GPU can be traced.
std::string try_to_trace(const DeviceSample& device, const std::shared_ptr<switch_trace::DriverDoor>& door) {
  for (const ProcessSample& process : device.processes) {
    if (process.mps_client) return "MPS is in use, whose clients the trace cannot tell apart";
  }
  const auto address = switch_trace::parse_bus_address(device.description->pci_bus_id);
  if (!address.ok()) return address.error().message;
  auto session = TraceSession::open(door, *address);
  if (!session.ok()) return session.error().message;
  const RaisedSysAdmin raised;
  const Status started = (*session)->start();
  return started.ok() ? "" : started.error().message;
}

}  // namespace

Findings check_exact_time(const Config& config, const std::string& library, const SampleBatch& batch) {
  if (!wants_exact_time(config)) {
    return {{Level::kOk, "exact time",
             "off: the time of processes that share a GPU is estimated from the driver's samples; --exact-time=on "
             "reads it from the driver to the microsecond, also for processes that always share"}};
  }
  const bool insisted = config.exact_time == ExactTimeMode::kOn;
  auto door = open_door(config, library);
  if (!door.ok()) return {{insisted ? Level::kFail : Level::kWarn, "exact time", door.error().message}};
  Findings findings;
  std::map<std::string, std::string> gpus_by_trouble;
  std::string fine;
  for (const DeviceSample& device : batch.devices) {
    if (!device.up) continue;
    const std::string trouble = try_to_trace(device, *door);
    std::string& gpus = trouble.empty() ? fine : gpus_by_trouble[trouble];
    gpus += (gpus.empty() ? "GPU " : ", ") + std::to_string(device.description->index);
  }
  for (const auto& [trouble, gpus] : gpus_by_trouble) {
    findings.push_back({Level::kWarn, "exact time",
                        gpus + ": " + trouble + ": its time is estimated from samples; see docs/exact-time.md"});
  }
  if (!fine.empty()) findings.push_back({Level::kOk, "exact time", fine + " can be traced"});
  if (fine.empty() && insisted && !findings.empty()) findings.front().level = Level::kFail;
  if (!fine.empty() && config.backend != Backend::kSim && !sys_admin_is_permitted()) {
    findings.push_back(
        {Level::kWarn, "exact time",
         "without the capability SYS_ADMIN the driver hides the processes of other users, and exact time "
         "switches itself off when it meets one: add the capability (Helm: exactTime.enabled)"});
  }
  return findings;
}

}  // namespace gpuledger::app
