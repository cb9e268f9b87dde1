// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

#include "base/name.h"

namespace gpuledger {

using Pid = uint32_t;

// "GPU-..." from the driver. The index is only for display: it changes over reboots.
struct GpuUuid {
  Name text;
  friend auto operator<=>(const GpuUuid&, const GpuUuid&) = default;
};

struct MigId {
  uint32_t gpu_instance = 0;
  uint32_t compute_instance = 0;
  friend auto operator<=>(const MigId&, const MigId&) = default;
};

// A process is its pid and its start time (clock ticks since boot), because pids are reused. start_ticks 0: the process
// exited before /proc could be read, so nothing more is known of it.
struct ProcKey {
  Pid pid = 0;
  uint64_t start_ticks = 0;
  friend auto operator<=>(const ProcKey&, const ProcKey&) = default;
};

}  // namespace gpuledger
