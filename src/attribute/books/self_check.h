// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>

namespace gpuledger::attribute {

// Measures the error of the split in the field. When a process becomes or stops being alone on the GPU, its measured
// power is known: what it was charged in the shared time beside that moment is compared with that power times its GPU
// time. With two processes one's excess is the other's lack, so the difference is the misattributed energy.
// docs/self-check.md has the rule and its bias.
class SelfCheck {
 public:
  // A process that was on the GPU in the step, with its totals as the estimator has them now. Only differences count.
  struct Process {
    uint64_t account = 0;
    double joules = 0;   // claimed, above the static watts
    double seconds = 0;  // GPU time
  };

  // Kept over a restart. The sums of old comparisons decay.
  struct Memory {
    uint64_t comparisons = 0;
    double wrong_joules = 0;
    double compared_joules = 0;
  };

  SelfCheck() = default;
  explicit SelfCheck(const Memory& memory);
  const Memory& memory() const { return memory_; }

  // One step: begin and end in seconds, the GPU's joules above the static watts, and who was there, also for a part of
  // it. A process that is not there has left. After a gap it begins anew.
  void observe(double begin, double end, double joules, std::span<const Process> processes);
  // The totals of the next step do not continue those of the last one.
  void interrupt();

  uint64_t comparisons() const { return memory_.comparisons; }
  // Misattributed share of shared energy; empty before the first comparison.
  std::optional<double> error_ratio() const;

 private:
  // All totals at the end of a step.
  struct Mark {
    double at = 0;
    double claimed = 0;
    double seconds = 0;
    double all = 0;  // the GPU's joules
  };
  // A stretch of shared time of one process.
  struct Shared {
    std::optional<double> watts_before;  // measured just before it, until it is compared
    Mark start;
    Mark begin;   // of its last half minute to minute
    Mark middle;  // the next `begin`
    Mark last;
    std::optional<Mark> before_last;
  };
  // The process that is alone now.
  struct Alone {
    struct Part {
      double seconds, joules, busy;
    };
    uint64_t account = 0;
    double since = 0;
    double busy_at = 0;            // its total GPU time at the last step
    std::deque<Part> parts;        // the last seconds
    std::optional<Shared> before;  // until it is compared
    double watts() const;          // while it is busy; 0: not known
  };

  void observe_alone(double begin, double end, double joules, const Process& process);
  void observe_shared(double end, std::span<const Process> processes);
  void begin_alone(double begin, const Process& process);
  void finish(Shared& shared);
  void compare_with_before(Shared& shared, const Mark& end);
  void compare(double watts, const Mark& begin, const Mark& end);

  Memory memory_;
  double all_ = 0;  // the GPU's joules since the last interrupt
  double end_ = 0;
  std::optional<Alone> alone_;
  std::map<uint64_t, Shared> shared_;
};

}  // namespace gpuledger::attribute
