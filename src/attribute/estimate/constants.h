// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpuledger::attribute {

// Every number of the model that is not measured in the step itself: X(name, value, unit, meaning, source).
// docs/attribution.md has this table; tests/accuracy can change each one.
// Source "H200": measured on one. "judgement": chosen once. docs/decisions/0013-one-model.md has the accuracy with
// each one halved and doubled.
// clang-format off
#define GPU_LEDGER_MODEL_CONSTANTS(X)                                                                                     \
  X(reading_error, 0.018, "of full scale", "fixed error of a reading of activity or power", "H200")                       \
  X(activity_error, 0.05, "of the value", "error of the sum of activity over processes", "H200")                          \
  X(power_error, 0.08, "of the value", "error of the sum of watts over processes", "H200: 0.88 to 1.05")                  \
  X(timing_error, 0.3, "s", "difference between the clocks of power, activity and process lists", "H200: 0.1 to 0.2 each")\
  X(watts_from_activity_error, 0.15, "of the limit", "error of the watts expected from activity", "H200")                 \
  X(share_deviation, 0.45, "of the share", "deviation of a window's share of time from the usual share", "judgement")     \
  X(samples_per_fact, 2, "samples", "consecutive driver samples that count as one independent observation", "H200: a strobe")\
  X(share_memory, 15, "s", "decay time of samples in the usual share", "judgement")                                       \
  X(mps_deviation, 2, "of the time", "deviation of an MPS client's time from its part of the SMs", "judgement")           \
  X(mps_most, 1.05, "of the time", "most time of an MPS client, relative to the busy time", "physics")                    \
  X(exact_error, 0.02, "of the time", "error of a time from the context-switch trace", "H200")                            \
  X(exact_least, 0.003, "of the time", "minimum of that error", "H200")                                                   \
  X(exact_idle_error, 0.25, "of that time", "error of residency that may be idle", "judgement")                           \
  X(exact_scale_error, 0.2, "of log(work)", "error if residency is longer than the GPU's busy time", "judgement")         \
  X(kin_spread, 0.15, "of the value", "spread between processes of one kind", "judgement")                                \
  X(phase_odds, 4, "log odds", "required gain for the explanation that a process changed phase", "judgement")             \
  X(phase_windows, 6, "windows", "windows whose mean is asked the same", "judgement")
// clang-format on

struct Constants {
#define GPU_LEDGER_FIELD(name, value, unit, meaning, source) double name = value;
  GPU_LEDGER_MODEL_CONSTANTS(GPU_LEDGER_FIELD)
#undef GPU_LEDGER_FIELD
};

}  // namespace gpuledger::attribute
