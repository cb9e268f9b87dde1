// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/units.h"
#include "model/owner.h"

// The last hour in coarse steps, for people who look at it later. Immutable once published; a history and the next one
// share their steps.
namespace gpuledger {

// As people see it: the containers of a pod are one owner.
struct HistoryOwner {
  OwnerKind kind = OwnerKind::kHost;
  Name name_space;   // of pods
  std::string text;  // owner_text()
  friend auto operator<=>(const HistoryOwner&, const HistoryOwner&) = default;
};

struct HistoryPart {
  std::shared_ptr<const HistoryOwner> owner;
  Energy energy;
};

// One GPU in one step. measured = parts + others + unattributed, exactly.
struct HistoryPoint {
  GpuUuid gpu;
  uint32_t gpu_index = 0;
  // Steady, when its energy was read. Longer than a step if it did not answer in between.
  Nanoseconds from{0};
  Nanoseconds to{0};
  Energy measured;
  Energy unattributed;
  Energy others;  // of owners that are not among the parts, and closed accounts
  std::optional<Power> power_limit;
  std::vector<HistoryPart> parts;  // the largest first
};

struct HistoryStep {
  Nanoseconds to{0};                 // steady
  std::vector<HistoryPoint> points;  // GPUs that answered
};

struct History {
  Timestamp at;  // of the last step. Older wall times are computed from steady ones, so a clock change does no harm
  Nanoseconds step{0};
  std::vector<std::shared_ptr<const HistoryStep>> steps;  // the oldest first
};

}  // namespace gpuledger
