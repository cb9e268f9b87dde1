// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "attribute/estimate/bounded_least_squares.h"
#include "attribute/estimate/root.h"
#include "attribute/estimate/window.h"

namespace gpuledger::attribute {

// Estimates one window from all that is known now: the time of each process, what each spent with its error, and what
// the window says of each signature. One step of expectation propagation; docs/attribution.md has the formulas.
class WindowSolver {
 public:
  explicit WindowSolver(const Constants& constants) : constants_(constants) {}

  // Also replaces what the window said before in the beliefs of its roster, unless it is not to teach.
  void solve(Window& window, bool teach = true);

  // How well what is known explains the window, before it is estimated.
  struct Fit {
    double log_evidence = 0;
    double misfit = 0;  // mean square error over all that is shown; about 1 where the model holds
  };
  // belief: instead of the one of this seat. open_times: as if nothing were known of the shares.
  Fit fit(Window& window, size_t seat, const SignatureBelief* belief, bool open_times);

 private:
  // One process while the window is solved.
  struct Work {
    const Moments* signature = nullptr;  // without what this window says: `own`, or the belief's, which outlives this
    Moments own;
    const FeatureMatrix* doubtful = nullptr;  // its covariance for the errors: by what the process showed by itself
    double prior_time = 0;
    double prior_variance = 1;
    double time = 0;
    double time_variance = 0;  // given all evidence
    double spent = 0;          // in the power feature
  };
  // What can be added up over processes, with its uncertainty.
  struct Spread {
    double own = 0;
    Joint by_times = Joint::Zero();  // explained by the readings
    Joint by_signatures = Joint::Zero();
    double share = 0;
    Spread& operator+=(const Spread& other);
  };
  struct TimePrior {
    Features expected;
    FeatureMatrix by_time;
  };

  void take_out_own_message(const Window& window);
  TimePrior time_prior(const Window& window) const;
  void weigh_time_evidence(Window& window);
  void sum_up_time_evidence();
  double busy_error(const Window& window) const;
  enum class Noise { kTimesOpen, kTimesGiven };
  FeatureMatrix noise(const Window& window, Noise kind) const;
  void solve_times(const Window& window, const FeatureMatrix& noise_now);
  void posterior_of_times(const Window& window, const FeatureMatrix& noise_now);
  void charge(Window& window, const FeatureMatrix& noise_now);
  void estimate_errors(Window& window, const FeatureMatrix& noise_now);
  void spread_of_all(const Window& window, const FeatureMatrix& doubtful_noise, double spent);
  void send_messages(Window& window, const FeatureMatrix& noise_now);
  JointMatrix with_open_times(const Window& window, const FeatureMatrix& noise_now) const;
  FeatureMatrix doubtful_noise(const Window& window, FeatureMatrix noise_now);
  bool sums_to_busy(const Window& window) const;

  static constexpr double kNothing = 1e-5;  // who had less than this of the time, squared, adds no noise
  // Who had less of the time is not learned from the window: it would say nothing and cost as much as the others.
  static constexpr double kLeastTaught = 0.02;

  const Constants constants_;
  std::vector<Work> work_;
  std::vector<Variable> variables_;
  std::vector<double> times_;
  std::vector<Spread> spreads_;
  DualStart dual_;                  // sums over the variables' effects
  Joint expected_ = Joint::Zero();  // by the time evidence alone
};

}  // namespace gpuledger::attribute
