#pragma once

#include "attribute/estimate/features.h"

namespace gpuledger::attribute {

// Every number of the model that is not measured in the step itself: X(name, value, unit, meaning, source).
// docs/attribution.md has this table; tests/accuracy can change each one.
// Sources: "H200" was measured there; "judgement" was chosen once. What each is worth, halved and doubled, is in
// docs/decisions/0013-one-model.md.
// clang-format off
#define GPU_LEDGER_MODEL_CONSTANTS(X)                                                                                     \
  X(reading_error, 0.018, "of full scale", "fixed error of a reading of activity or power", "H200")                       \
  X(activity_error, 0.05, "of the value", "activity of several processes adds up within this", "H200")                    \
  X(power_error, 0.08, "of the value", "watts of several processes add up within this", "H200: 0.88 to 1.05")             \
  X(timing_error, 0.3, "s", "how far apart the clocks of power, activity and process lists are", "H200: 0.1 to 0.2 each")  \
  X(watts_from_activity_error, 0.15, "of the limit", "watts told by activity are off by this", "H200")                    \
  X(share_deviation, 0.45, "of the share", "a window's share of time is off its usual share by this", "judgement")        \
  X(samples_per_fact, 2, "samples", "so many samples of the driver in a row tell as much as one", "H200: a strobe")       \
  X(share_memory, 15, "s", "samples older than this no longer speak for the present share", "judgement")                  \
  X(mps_deviation, 2, "of the time", "a client of MPS has its part of the SMs, give or take this", "judgement")                                                    \
  X(mps_most, 1.05, "of the time", "no client of MPS has more than when it is alone", "physics")                          \
  X(exact_error, 0.02, "of the time", "error of a time from the context-switch trace", "H200")                            \
  X(exact_least, 0.003, "of the time", "and at least this", "H200")                                                       \
  X(exact_idle_error, 0.25, "of that time", "error of residency that may be idle", "judgement")                            \
  X(exact_scale_error, 0.2, "of log(idle)", "error where residency is longer than the GPU was busy", "judgement")         \
  X(kin_spread, 0.15, "of the value", "processes of one kind differ by this", "judgement")                                \
  X(phase_odds, 4, "log odds", "a process that changed its ways must explain a window better by this", "judgement")
// clang-format on

struct Constants {
#define GPU_LEDGER_FIELD(name, value, unit, meaning, source) double name = value;
  GPU_LEDGER_MODEL_CONSTANTS(GPU_LEDGER_FIELD)
#undef GPU_LEDGER_FIELD
};

// What is assumed of a process that nobody has seen yet.
struct SignaturePrior {
  FeatureMatrix precision;
  Features shift;  // precision * mean
};

// model: the GPU's name. What activity costs in watts is measured for Hopper; for others a rough table serves.
SignaturePrior signature_prior(const Constants& constants, const std::string& model);

}  // namespace gpuledger::attribute
