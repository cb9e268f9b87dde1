// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "attribute/estimate/estimator.h"
#include "attribute/estimate/features.h"

namespace gpuledger::attribute {

// About a second in which no process came or left.
struct WindowInput {
  struct Part {
    Member member;
    double samples = 0;       // of the driver that name it, times their utilization
    double sampled_time = 0;  // of the window, by these samples
    double time = 0;          // of the window, by the context-switch trace
    double idle = 0;          // part of `time` that may be idle
  };

  double begin = 0;
  double end = 0;
  double joules = 0;
  double full_watts = 1;
  bool mps = false;
  bool traced = false;  // the parts' times are known
  bool blind = false;   // no readings of the monitors: it sends no messages
  Features shown = Features::Zero();
  Eigen::Array<bool, kFeatures, 1> known = Eigen::Array<bool, kFeatures, 1>::Constant(false);
  double clock = 1;  // of the SMs, over the reference
  double busy = 1;   // share of the time in which any kernel ran
  std::vector<Part> parts;

  double seconds() const { return end - begin; }
};

// Turns steps into windows. A step ends at a sample; a window ends where a process comes or leaves. A window is cut
// once it has its readings: the monitors are a tenth of a second late.
class Timeline {
 public:
  explicit Timeline(const Constants& constants = {}) : constants_(constants) {}

  std::vector<WindowInput> add(const Step& step);
  // False: there is a gap before the step, and the last window cannot be completed.
  bool continued_by(const Step& step) const;
  // The end of the last step, without readings: it is charged provisionally and sends no messages.
  WindowInput rest(const Step& step) const { return cut_window(mark_, step.end, step); }

 private:
  struct Stay {
    Member member;
    double from = 0;
    double to = 0;
  };
  struct Knot {
    double at = 0;
    double joules = 0;  // since the timeline began
  };
  struct Samples {
    uint64_t account = 0;
    double from = 0;
    double to = 0;
    double rate = 0;   // per second
    double share = 0;  // of the time from `from` to `to`
  };

  void begin_anew(double at);
  void take_in(const Step& step);
  void take_in_energy(const Step& step);
  std::vector<double> cuts(double limit) const;
  WindowInput cut_window(double begin, double end, const Step& step) const;
  void add_activity(WindowInput& window) const;
  void add_times(WindowInput& window) const;
  double joules_until(double at) const;
  void drop_past();

  const Constants constants_;
  bool started_ = false;
  bool monitored_ = false;  // this GPU has readings of activity
  double mark_ = 0;         // windows are cut up to here
  double last_end_ = 0;     // of the last step
  std::map<uint64_t, Stay> stays_;
  std::deque<Knot> energy_;
  std::deque<Reading> readings_;
  std::deque<ResidencySlot> residency_;
  std::deque<Samples> samples_;
};

}  // namespace gpuledger::attribute
