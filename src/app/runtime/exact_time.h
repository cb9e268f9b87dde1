// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "app/runtime/wiring.h"
#include "sample/switch_trace/driver_door.h"
#include "sample/switch_trace/tracer_thread.h"

namespace gpuledger::app {

// Whether anything but replay is to read the driver's trace of context switches.
bool wants_exact_time(const Config& config);

// The device nodes, or those of the simulated node. library: of the driver that is open.
Result<std::shared_ptr<switch_trace::DriverDoor>> open_door(const Config& config, const std::string& library);

// The source with the trace added to what it says, where that is wanted.
Result<std::unique_ptr<GpuSource>> add_exact_time(const Config& config, const std::string& library,
                                                  std::unique_ptr<GpuSource> source, const Clock& clock);

// Before any thread is made: only the call that binds the trace puts CAP_SYS_ADMIN to use, all else does without. Not
// where a GPU is cut into MIG instances, whose processes the driver lists only for those who have it in use.
void lay_aside_rights_for_exact_time(const Config& config);

}  // namespace gpuledger::app
