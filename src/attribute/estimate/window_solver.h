// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "attribute/estimate/bounded_least_squares.h"
#include "attribute/estimate/root.h"
#include "attribute/estimate/window.h"

namespace gpuledger::attribute {

// Estimates one window: the time of each process, its energy with the error, and the message to its signature. One step
// of expectation propagation; docs/attribution.md has the formulas.
class WindowSolver {
 public:
  explicit WindowSolver(const Constants& constants) : constants_(constants) {}

  // With `teach` the window's messages in the beliefs of its roster are replaced.
  void solve(Window& window, bool teach = true);

  // How well beliefs explain the window, before it is estimated.
  struct Fit {
    double log_evidence = 0;
    double misfit = 0;  // mean square of the normalised residuals; about 1 if the model holds
  };
  // belief: replaces the seat's, if not null. open_times: the shares are treated as unknown.
  Fit fit(Window& window, size_t seat, const SignatureBelief* belief, bool open_times);

 private:
  // One process while the window is solved.
  struct Work {
    const Moments* signature = nullptr;  // without this window's message: `own`, or the belief's, which outlives this
    Moments own;
    const FeatureMatrix* doubtful = nullptr;  // its covariance for the errors: from windows with the process alone
    double prior_time = 0;
    double prior_variance = 1;
    double time = 0;
    double time_variance = 0;  // given all evidence
    double spent = 0;          // as power feature
  };
  // Terms of the variance that can be summed over processes.
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

  static constexpr double kNothing = 1e-5;  // processes with less time than this, squared, add no noise
  // A process with less of the time gets no message: it would say nothing and cost as much as the others.
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
