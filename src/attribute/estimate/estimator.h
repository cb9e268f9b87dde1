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

// How often the driver samples who works.
inline constexpr double kSamplesPerSecond = 5;

// A process that was on the GPU during a step.
struct Member {
  uint64_t account = 0;  // who is charged; never used twice on one GPU
  uint64_t owner = 0;    // who pays for it, for errors of sums; likewise
  uint64_t kin = 0;      // equal for processes of one kind; 0: not known
  ProcKey process;
  double busy = 0;  // share of the driver's samples that caught it, times how busy they were
  double from = 0;  // seconds of the steady clock: there at least from here
  double to = 0;    // to here
};

// One reading of the performance monitors, and the time that it speaks for.
struct Reading {
  double from = 0;
  double to = 0;
  double clock = 1;            // of the SMs, over the reference
  std::optional<double> busy;  // share of the time with any kernel at all
  std::array<std::optional<double>, Activity::kParts> parts = {};
};

// Power above the static watts at a moment; only its shape counts.
struct PowerPoint {
  double at = 0;
  double watts = 0;
};

// Time on the engine by the context-switch trace, in a short stretch of time. Account 0: somebody else.
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
  kSamples,  // the driver's samples name who worked
  kMps,      // clients of MPS: the samples name their server only
  kSlices,   // MIG: instances by their slices and activity
  kNone,     // nothing tells who worked
};

// What was spent above the static watts in one step of one GPU, and what the GPU showed.
struct Step {
  double begin = 0;  // seconds of the steady clock
  double end = 0;
  double dynamic_joules = 0;
  double full_watts = 1;  // what 1 means in the power feature
  bool quiet = false;     // nobody worked at all
  TimeEvidence evidence = TimeEvidence::kSamples;
  std::vector<Member> members;
  std::vector<double> shares;  // of the GPU's time by member, not normalised; all zero: nobody was caught
  std::vector<Reading> readings;
  std::vector<PowerPoint> power;
  std::vector<ResidencySlot> residency;

  double seconds() const { return end - begin; }
};

// What the estimator remembers over a restart.
struct EstimatorMemory {
  std::map<ProcKey, SignatureMemory> signatures;
  std::map<uint64_t, SignatureMemory> kin;
};

struct Claim {
  std::optional<double> seconds;  // at work on the GPU in all, by the best evidence; empty: not estimated
  bool traced = false;            // the latest of these by the context-switch trace
  double joules = 0;              // above the static watts: what it should have been charged in all
  double last_joules = 0;         // of the last step
  double error = 0;               // one standard deviation of `joules`
};

// Who spent the joules above the static watts? Floating point, no I/O. Claims of the past may change with what is
// learned later; the books turn claims into counters that never fall.
class Estimator {
 public:
  virtual ~Estimator() = default;

  // False: nothing can be said about who spent this step, and nobody claims it.
  virtual bool observe(const Step& step) = 0;
  virtual Claim claim(uint64_t account) const = 0;
  // One standard deviation of the sum of all claims of the owner. Errors of processes that share a GPU are correlated,
  // so it is not the sum of theirs.
  virtual double owner_error(uint64_t owner) const = 0;
  // Charged by another rule: counts as rightly claimed, give or take `error`.
  virtual void settle(uint64_t account, double joules, double error) = 0;
  virtual void settle_owner(uint64_t owner, double error) = 0;
  virtual void forget(uint64_t account, const ProcKey& process) = 0;
  virtual void forget_owner(uint64_t owner) = 0;
  // Watts over the limit while it works, where they are known.
  virtual std::optional<double> usual_power(const ProcKey& process) const = 0;

  virtual EstimatorMemory memory() const { return {}; }
  virtual void recall(const EstimatorMemory&) {}
};

// model: the GPU's name.
std::unique_ptr<Estimator> make_estimator(Attribution attribution, const Constants& constants,
                                          const std::string& model);

}  // namespace gpuledger::attribute
