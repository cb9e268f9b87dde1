// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "app/runtime/wiring.h"
#include "sample/switch_trace/driver_door.h"
#include "sample/switch_trace/tracer_thread.h"

namespace gpuledger::app {

// Whether a command other than replay is to read the context-switch trace. With auto only if the driver would name all
// processes: the real driver does so only for CAP_SYS_ADMIN.
bool wants_exact_time(const Config& config);

// The device nodes, or the simulated node's. library: of the open driver.
Result<std::shared_ptr<switch_trace::DriverDoor>> open_door(const Config& config, const std::string& library);

// The source with the trace added, if that is wanted. With auto a missing trace is no error.
Result<std::unique_ptr<GpuSource>> add_exact_time(const Config& config, const std::string& library,
                                                  std::unique_ptr<GpuSource> source, const Clock& clock);

// Call before any thread starts: only the call that binds the trace uses CAP_SYS_ADMIN. Does nothing if a GPU has MIG
// instances, or may get some (NVIDIA_MIG_MONITOR_DEVICES): the driver lists their processes only to clients with that
// capability.
void lay_aside_rights_for_exact_time(const Config& config);

}  // namespace gpuledger::app
