// SPDX-License-Identifier: Apache-2.0
#include "sample/steady_counters.h"

namespace gpuledger {
namespace {

// Of nanoseconds three days; of KiB as much at a terabyte a second.
constexpr uint64_t kLargestRise = uint64_t{1} << 48;

bool goes_on(uint64_t from, uint64_t to) {
  return to >= from && to - from <= kLargestRise;
}

bool is_counter(Vital vital) {
  switch (vital) {
    case Vital::kPowerViolation:
    case Vital::kThermalViolation:
    case Vital::kSyncBoostViolation:
    case Vital::kBoardLimitViolation:
    case Vital::kLowUtilizationViolation:
    case Vital::kReliabilityViolation:
    case Vital::kAppClockViolation:
    case Vital::kPcieReplays:
    case Vital::kEccCorrectedVolatile:
    case Vital::kEccUncorrectedVolatile:
    case Vital::kEccCorrectedAggregate:
    case Vital::kEccUncorrectedAggregate:
    case Vital::kNvlinkFlitErrors:
    case Vital::kNvlinkDataErrors:
    case Vital::kNvlinkReplayErrors:
    case Vital::kNvlinkRecoveryErrors:
    case Vital::kNvlinkSent:
    case Vital::kNvlinkReceived: return true;
    default: return false;
  }
}

}  // namespace

bool SteadyCounters::hold(Vital vital, std::optional<uint64_t>& value) {
  if (!value || !is_counter(vital)) return true;
  std::optional<Course>& course = courses_[static_cast<size_t>(vital)];
  if (!course || goes_on(course->believed, *value) || (course->doubted && goes_on(*course->doubted, *value))) {
    course = Course{*value, std::nullopt};
    return true;
  }
  course->doubted = value;
  value = course->believed;
  return false;
}

}  // namespace gpuledger
