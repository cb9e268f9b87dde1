// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpuledger::attribute {

// Every number of the model that is not measured in the step itself: X(name, value, unit, meaning, source).
// docs/attribution.md has this table; tests/accuracy can change each one.
// Source "H200": measured on one. "judgement": chosen once. docs/decisions/0024-one-posterior.md has the accuracy with
// each one halved and doubled.
// clang-format off
#define GPU_LEDGER_MODEL_CONSTANTS(X)                                                                                     \
  X(window, 1, "s", "length of a window in which nobody comes or leaves", "judgement")                                    \
  X(window_least, 0.75, "of a window", "the end of a step waits for the next one if it is shorter", "judgement")          \
  X(window_wait, 3, "s", "longest wait for the readings of a window", "judgement")                                        \
  X(traced_least, 0.7, "of the window", "part that must be traced for times to be known", "judgement")                    \
  X(reading_error, 0.018, "of full scale", "fixed error of a reading of activity or power", "H200")                       \
  X(timing_error, 0.3, "s", "difference between the clocks of power, activity and process lists", "H200: 0.1 to 0.2 each")\
  X(activity_error, 0.05, "of the value", "deviation of the activity from the sum over processes", "H200")                \
  X(power_error, 0.08, "of the value", "deviation of the watts from the sum over processes", "H200: 0.88 to 1.05")        \
  X(deviation_memory, 8, "s", "decay time of that deviation", "judgement")                                                \
  X(deviation_alone, 0.25, "of the deviation", "deviation if only one process is there", "judgement")                     \
  X(company_error, 0.15, "of the watts", "standard error that no evidence in company takes away", "judgement")            \
  X(stranger_error, 1, "of the watts", "the same for those who were never apart", "judgement")                            \
  X(stranger_seconds, 2, "s", "least time in another company of those who were apart", "judgement")                       \
  X(prior_spread, 1, "of the measured one", "spread of the signature of an unknown process", "H200")                      \
  X(watts_from_activity_error, 0.15, "of the limit", "error of the watts expected from activity", "H200")                 \
  X(together, 8, "signatures", "those of a GPU whose covariances with each other are kept", "cost")                       \
  X(kin_spread, 0.15, "of the value", "spread between processes of one kind", "judgement")                                \
  X(fading, 0.001, "of the prior's variance a second", "change of a signature while its process works", "judgement")      \
  X(highest, 0.9, "of full scale", "upper bound of a signature", "judgement")                                             \
  X(change_odds, 4, "log odds", "odds against an explanation by which a process changed", "judgement")                    \
  X(change_of_time, 0.2, "of the window", "by how much a traced time moves when nothing is against it", "judgement")      \
  X(change_lead, 0.5, "log odds", "required lead over explanations by which another process changed", "judgement")        \
  X(change_windows, 2, "windows", "windows whose mean must show the change, by samples", "judgement")                     \
  X(rivals, 3, "explanations", "those that are followed beside the best one", "cost")                                     \
  X(rival_odds, 7, "log odds", "by how much one of them may fall behind", "judgement")                                    \
  X(rival_windows, 30, "windows", "how long two explanations are followed side by side", "cost")                          \
  X(share_deviation, 0.3, "of the share", "deviation of a window's share of time from the usual share", "judgement")      \
  X(share_least, 0.003, "of the window", "minimum of that deviation", "judgement")                                        \
  X(company_memory, 10, "s", "time in company after which each second counts less", "judgement")                         \
  X(share_memory, 15, "s", "decay time of samples in the usual share", "judgement")                                       \
  X(samples_per_fact, 2, "samples", "consecutive driver samples that count as one independent observation", "H200: a strobe")\
  X(mps_deviation, 2, "of the time", "deviation of an MPS client's time from its part of the SMs", "judgement")           \
  X(mps_most, 1.05, "of the time", "most time of an MPS client, relative to the busy time", "physics")                    \
  X(mps_reading_error, 0.01, "of full scale", "fixed error of a reading, for the times of MPS clients", "judgement")      \
  X(mps_relative_error, 0.1, "of the value", "deviation of the readings from the sum over MPS clients", "judgement")      \
  X(mps_timing_error, 0.1, "s", "timing_error, for the times of MPS clients", "judgement")                                \
  X(mps_change, 1, "of log(time)", "change of an MPS client's time that costs 1 of the log likelihood", "judgement")      \
  X(mps_softness, 0.2, "of log(time)", "least change of a time, for its error", "judgement")                              \
  X(mps_time_spread, 3, "of log(time)", "spread of an MPS client's time if nothing is known", "judgement")                \
  X(mps_first_time, 0.3, "of the window", "first guess of the time of a new MPS client", "judgement")                     \
  X(exact_error, 0.02, "of the time", "error of a time from the context-switch trace", "H200")                            \
  X(exact_least, 0.003, "of the time", "minimum of that error", "H200")                                                   \
  X(exact_idle_error, 0.25, "of that time", "error of residency that may be idle", "judgement")                           \
  X(exact_scale_error, 0.2, "of log(work)", "error if residency is longer than the GPU's busy time", "judgement")         \
  X(monitor_delay, 0.1, "s", "age of the performance monitors' readings", "H200")                                         \
  X(monitor_refresh, 0.1, "s", "time that one of these readings covers", "H200")                                          \
  X(debt_after_exit, 60, "s", "how long an exited process is charged for the rest of its claim", "judgement")             \
  X(least_pace, 0.5, "of what it uses now", "least charge of a process that was charged too much before", "judgement")    \
  X(resident_over_idle, 1.57, "of the idle watts", "static watts with processes", "H200: 124 W and 79 W")                 \
  X(resident_of_limit, 0.18, "of the power limit", "static watts before any are known", "H200")
// clang-format on

struct Constants {
#define GPU_LEDGER_FIELD(name, value, unit, meaning, source) double name = value;
  GPU_LEDGER_MODEL_CONSTANTS(GPU_LEDGER_FIELD)
#undef GPU_LEDGER_FIELD
};

}  // namespace gpuledger::attribute
