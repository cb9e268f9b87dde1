// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/window_solver.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numeric>

namespace gpuledger::attribute {
namespace {

// MPS clients reach bounds, which takes more rounds.
constexpr int kRounds = 2;
constexpr int kRoundsOfMps = 4;
constexpr double kLeastTimeError = 0.003;  // of a window: any process may work
constexpr double kTimeAlone = 1;           // error of the prior if a process is alone: the busy time decides

}  // namespace

void WindowSolver::solve(Window& window, bool teach) {
  take_out_own_message(window);
  weigh_time_evidence(window);
  sum_up_time_evidence();
  if (window.blind) {
    for (size_t i = 0; i < work_.size(); ++i) {
      window.parts[i].time = work_[i].prior_time;
      work_[i].spent = work_[i].prior_time * work_[i].signature->mean[kPower];
    }
    return charge(window, noise(window, Noise::kTimesGiven));
  }
  dual_.multipliers = {};
  const int rounds = window.roster->mps ? kRoundsOfMps : kRounds;
  for (int round = 0; round < rounds; ++round) {
    const FeatureMatrix open = noise(window, Noise::kTimesOpen);
    solve_times(window, open);
    if (round + 1 < rounds) posterior_of_times(window, open);
  }
  // The residual is divided according to the uncertainty of the signatures.
  Features expected = Features::Zero();
  for (size_t i = 0; i < work_.size(); ++i) {
    window.parts[i].time = work_[i].time;
    expected += work_[i].time * work_[i].signature->mean;
  }
  const FeatureMatrix given = noise(window, Noise::kTimesGiven);
  const Features pull = given.llt().solve(window.shown - expected);
  for (Work& work : work_) {
    const double power = work.signature->mean[kPower] + work.time * work.signature->covariance.col(kPower).dot(pull);
    work.spent = work.time * std::max(0.0, power);
  }
  charge(window, given);
  if (teach) send_messages(window, given);
}

void WindowSolver::take_out_own_message(const Window& window) {
  work_.resize(window.parts.size());
  for (size_t i = 0; i < work_.size(); ++i) {
    const SignatureBelief& belief = *window.roster->seats()[i].belief;
    const Message& message = window.parts[i].message;
    Work& work = work_[i];
    work.signature = &work.own;
    if (message.empty()) {
      work.signature = &belief.moments();
    } else {
      work.own = moments_of(belief.precision() - message.precision(), belief.shift() - message.shift());
    }
    work.time_variance = 0;
    work.spent = 0;
  }
}

bool WindowSolver::sums_to_busy(const Window& window) const {
  return !window.roster->mps || window.parts.size() == 1;
}

double WindowSolver::busy_error(const Window& window) const {
  return std::hypot(constants_.reading_error, constants_.activity_error * window.busy);
}

// Time evidence is one normal distribution per process: from the trace, the driver's samples, or presence.
void WindowSolver::weigh_time_evidence(Window& window) {
  double traced = 0;
  for (const Window::Part& part : window.parts) traced += part.traced_time;
  // Residency longer than the busy time: contexts were resident without work, and no other process waited.
  const double working = traced > 0 ? std::min(1.0, window.busy / traced) : 1;
  // Clients of MPS run side by side as long as there are SMs for all of them.
  double wanted = 0;
  for (const Work& work : work_) wanted += work.signature->mean[1 + Activity::kSm];
  for (size_t i = 0; i < work_.size(); ++i) {
    Work& work = work_[i];
    const Window::Part& part = window.parts[i];
    if (window.parts.size() == 1) {
      work.prior_time = window.busy;
      work.prior_variance = square(kTimeAlone);
    } else if (window.traced) {
      work.prior_time = part.traced_time * working;
      work.prior_variance = square(constants_.exact_error * work.prior_time + constants_.exact_least) +
                            square(constants_.exact_idle_error * part.traced_idle) +
                            square(constants_.exact_scale_error * std::log(working) * work.prior_time);
    } else if (window.roster->mps) {
      work.prior_time = window.busy * std::min(1.0, 1 / std::max(1e-9, wanted));
      work.prior_variance = square(constants_.mps_deviation * window.busy);
    } else {
      work.prior_time = part.share * window.busy;
      work.prior_variance = square(constants_.share_deviation * work.prior_time + kLeastTimeError) +
                            part.share_variance * square(window.busy);
    }
    work.time = window.parts[i].time > 0 ? window.parts[i].time : work.prior_time;
    work.time_variance = work.prior_variance;
  }
}

// Of the readings, with given or uncertain times: errors of the readings and of the signatures.
FeatureMatrix WindowSolver::noise(const Window& window, Noise kind) const {
  FeatureMatrix sum = window.variance.asDiagonal();
  for (const Work& work : work_) {
    const double weight = square(work.time) + (kind == Noise::kTimesOpen ? work.time_variance : 0);
    if (weight < kNothing) continue;
    sum += weight * work.signature->covariance;
  }
  return sum;
}

// The sums are constant while the window is solved.
void WindowSolver::sum_up_time_evidence() {
  variables_.resize(work_.size());
  expected_.setZero();
  for (size_t i = 0; i < work_.size(); ++i) {
    const Work& work = work_[i];
    Variable& variable = variables_[i];
    for (int f = 0; f < kFeatures; ++f) variable.effect[static_cast<size_t>(f)] = work.signature->mean[f];
    variable.effect[kFeatures] = 1;
    variable.prior_mean = work.prior_time;
    variable.prior_error = std::sqrt(work.prior_variance);
    expected_ += work.prior_time * Eigen::Map<const Joint>(variable.effect.data());
  }
  dual_.effects = {};
  add_effects(variables_, dual_.effects);
}

void WindowSolver::solve_times(const Window& window, const FeatureMatrix& noise_now) {
  std::array<Measurement, kFeatures + 1> measurements;
  for (size_t f = 0; f < kFeatures; ++f) measurements[f] = {window.shown[static_cast<int>(f)], 0, 0};
  // MPS clients overlap: their times add up to at least the time in which any kernel ran.
  const double error = busy_error(window);
  const bool all = sums_to_busy(window);
  measurements[kFeatures] = {window.busy, all ? error : kNoMatter * error, error};
  Eigen::Map<JointMatrix>(dual_.noise.front().data()) = joint_of(noise_now, 0);
  for (Variable& variable : variables_) variable.highest = all ? 10 : constants_.mps_most * window.busy;
  bounded_least_squares(measurements, variables_, dual_, times_);
  for (size_t i = 0; i < work_.size(); ++i) work_[i].time = times_[i];
}

// The prior covariance of the readings and of the sum of all times.
JointMatrix WindowSolver::with_open_times(const Window& window, const FeatureMatrix& noise_now) const {
  return joint_of(noise_now, square(sums_to_busy(window) ? busy_error(window) : kNoMatter)) +
         Eigen::Map<const JointMatrix>(dual_.effects.front().data());
}

void WindowSolver::posterior_of_times(const Window& window, const FeatureMatrix& noise_now) {
  const JointMatrix root = inverse_root_of(with_open_times(window, noise_now));
  for (size_t i = 0; i < work_.size(); ++i) {
    Work& work = work_[i];
    const Joint explained = root.lazyProduct(Eigen::Map<const Joint>(variables_[i].effect.data()));
    work.time_variance = std::max(0.0, work.prior_variance - square(work.prior_variance) * explained.squaredNorm());
  }
}

// The measured energy is divided in proportion to the estimated energies.
void WindowSolver::charge(Window& window, const FeatureMatrix& noise_now) {
  double sum = 0;
  for (const Work& work : work_) sum += work.spent;
  if (sum <= 0) {
    for (Work& work : work_) work.spent = work.prior_time;
    sum = std::accumulate(work_.begin(), work_.end(), 0.0, [](double s, const Work& w) { return s + w.spent; });
  }
  for (size_t i = 0; i < work_.size(); ++i) {
    const double share = sum > 0 ? work_[i].spent / sum : 1 / static_cast<double>(work_.size());
    window.parts[i].joules = window.joules * share;
  }
  estimate_errors(window, noise_now);
}

}  // namespace gpuledger::attribute
