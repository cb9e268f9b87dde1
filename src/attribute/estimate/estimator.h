// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "attribute/estimate/constants.h"
#include "attribute/estimate/signature_memory.h"
#include "base/ids.h"
#include "model/policy.h"

namespace gpuledger::attribute {

// Rate of the driver's samples.
inline constexpr double kSamplesPerSecond = 5;

// A process that was on the GPU during a step.
struct Member {
  uint64_t account = 0;  // never used twice on one GPU
  uint64_t owner = 0;    // for errors of sums; never used twice on one GPU
  uint64_t kin = 0;      // equal for processes of one kind; 0: not known
  ProcKey process;
  double busy = 0;  // share of the driver's samples that name it, times their utilization
  double from = 0;  // seconds of the steady clock; it ran at least from `from` to `to`
  double to = 0;
};

// One reading of the performance monitors, and the time that it covers.
struct Reading {
  double from = 0;
  double to = 0;
  double clock = 1;            // of the SMs, over the reference
  std::optional<double> busy;  // share of the time with any kernel
  std::array<std::optional<double>, Activity::kParts> parts = {};
};

// Power above the static watts; only relative values matter.
struct PowerPoint {
  double at = 0;
  double watts = 0;
};

// Time on the engine in a short interval, from the context-switch trace. Account 0: any other process.
struct ResidencySlot {
  double from = 0;
  double to = 0;
  struct Time {
    uint64_t account = 0;
    double seconds = 0;
    double contended = 0;  // of these: another process waited, so all of it is work
  };
  std::vector<Time> times;
};

enum class TimeEvidence {
  kSamples,  // the driver's samples name the processes
  kMps,      // clients of MPS: the samples name only their server
  kSlices,   // MIG: instances by their slices and activity
  kNone,     // no evidence
};

// One step of one GPU: its energy above the static watts, and the evidence.
struct Step {
  double begin = 0;  // seconds of the steady clock
  double end = 0;
  double dynamic_joules = 0;
  double full_watts = 1;  // unit of the power feature
  bool quiet = false;     // no process worked
  TimeEvidence evidence = TimeEvidence::kSamples;
  std::vector<Member> members;
  std::vector<double> shares;  // of the GPU's time by member, not normalised; all zero: no samples
  std::vector<Reading> readings;
  std::vector<PowerPoint> power;
  std::vector<ResidencySlot> residency;

  double seconds() const { return end - begin; }
};

// What the estimator keeps over a restart.
struct EstimatorMemory {
  std::map<ProcKey, SignatureMemory> signatures;
  std::map<uint64_t, SignatureMemory> kin;
};

struct Claim {
  std::optional<double> seconds;  // total GPU time, by the best evidence; empty: not estimated
  bool traced = false;            // the latest seconds are from the context-switch trace
  double joules = 0;              // total above the static watts
  double last_joules = 0;         // of the last step
  double error = 0;               // one standard error of `joules`
};

// Estimates which process used the joules above the static watts. Floating point, no I/O. Later evidence may change
// past claims; the books turn claims into counters that never fall.
class Estimator {
 public:
  virtual ~Estimator() = default;

  // False: there is no evidence for this step, and it adds to no claim.
  virtual bool observe(const Step& step) = 0;
  virtual Claim claim(uint64_t account) const = 0;
  // One standard error of the sum of the owner's claims. Errors of processes that share a GPU are correlated, so it is
  // not the sum of the claims' errors.
  virtual double owner_error(uint64_t owner) const = 0;
  // Adds joules to the claim that were charged by another rule.
  virtual void settle(uint64_t account, double joules, double error) = 0;
  virtual void settle_owner(uint64_t owner, double error) = 0;
  virtual void forget(uint64_t account, const ProcKey& process) = 0;
  virtual void forget_owner(uint64_t owner) = 0;
  // Usual watts / power limit; empty: not known.
  virtual std::optional<double> usual_power(const ProcKey& process) const = 0;

  virtual EstimatorMemory memory() const { return {}; }
  virtual void recall(const EstimatorMemory&) {}
};

// model: the GPU's name.
std::unique_ptr<Estimator> make_estimator(Attribution attribution, const Constants& constants,
                                          const std::string& model);

}  // namespace gpuledger::attribute
