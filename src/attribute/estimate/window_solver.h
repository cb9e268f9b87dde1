#pragma once

#include <vector>

#include "attribute/estimate/bounded_least_squares.h"
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
    Moments signature;       // without what this window says
    FeatureMatrix doubtful;  // its covariance, if all windows of this roster count as one
    double prior_time = 0;
    double prior_variance = 1;
    double time = 0;
    double time_variance = 0;  // given all evidence
    double spent = 0;          // in the power feature
  };
  using Joint = Eigen::Matrix<double, kFeatures + 1, 1>;
  using JointMatrix = Eigen::Matrix<double, kFeatures + 1, kFeatures + 1>;

  struct TimePrior {
    Features expected;
    FeatureMatrix by_time;
  };

  void take_out_own_message(const Window& window);
  TimePrior time_prior(const Window& window) const;
  void weigh_time_evidence(Window& window);
  double busy_error(const Window& window) const;
  enum class Noise { kTimesOpen, kTimesGiven, kDoubtful };
  FeatureMatrix noise(const Window& window, Noise kind) const;
  void solve_times(const Window& window);
  void posterior_of_times(const Window& window, const FeatureMatrix& noise);
  void charge(Window& window);
  void estimate_errors(Window& window);
  void send_messages(Window& window);
  bool sums_to_busy(const Window& window) const;

  const Constants constants_;
  std::vector<Work> work_;
  std::vector<Variable> variables_;
  std::vector<double> times_;
};

}  // namespace gpuledger::attribute
