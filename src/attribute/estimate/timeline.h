// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "attribute/estimate/estimator.h"
#include "attribute/estimate/features.h"

namespace gpuledger::attribute {

// A stretch of about a second in which nobody came or left.
struct WindowInput {
  struct Part {
    Member member;
    double samples = 0;       // of the driver that caught it, times how busy they were
    double sampled_time = 0;  // by these samples, of the window
    double time = 0;          // by the context-switch trace, of the window
    double idle = 0;          // of this time, what may have been idle
  };

  double begin = 0;
  double end = 0;
  double joules = 0;
  double full_watts = 1;
  bool mps = false;
  bool traced = false;  // the parts' times are known
  bool blind = false;   // the monitors have no reading for it: it teaches nothing
  Features shown = Features::Zero();
  Eigen::Array<bool, kFeatures, 1> known = Eigen::Array<bool, kFeatures, 1>::Constant(false);
  double clock = 1;  // of the SMs, over the reference
  double busy = 1;   // share of the time in which any kernel ran
  std::vector<Part> parts;

  double seconds() const { return end - begin; }
};

// Turns steps into windows. Steps end when somebody looks; windows end where somebody comes or leaves, and only once
// the readings for them are there: the monitors are a tenth of a second behind.
class Timeline {
 public:
  std::vector<WindowInput> add(const Step& step);
  // False: time is missing before the step, and what was not complete yet never will be.
  bool continued_by(const Step& step) const;
  // What is left of the last step: it is not complete yet, so that it can be charged for now but teaches nothing.
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
    double share = 0;  // of the time that they speak for
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

  bool started_ = false;
  bool monitored_ = false;  // this GPU has shown the activity of its parts
  double mark_ = 0;         // windows are cut up to here
  double last_end_ = 0;     // of the last step
  std::map<uint64_t, Stay> stays_;
  std::deque<Knot> energy_;
  std::deque<Reading> readings_;
  std::deque<ResidencySlot> residency_;
  std::deque<Samples> samples_;
};

}  // namespace gpuledger::attribute
