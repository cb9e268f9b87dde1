// SPDX-License-Identifier: Apache-2.0
#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <utility>

#include "attribute/estimate/window_solver.h"

// The part of the solver for standard errors and for messages to signatures.
namespace gpuledger::attribute {
WindowSolver::Spread& WindowSolver::Spread::operator+=(const Spread& other) {
  own += other.own;
  by_times += other.by_times;
  by_signatures += other.by_signatures;
  share += other.share;
  return *this;
}

// Errors of shared windows are correlated: two processes that are never apart make each other look certain. So only
// this window and those with the process alone count for a signature's error.
FeatureMatrix WindowSolver::doubtful_noise(const Window& window, FeatureMatrix noise_now) {
  for (size_t i = 0; i < work_.size(); ++i) {
    Work& work = work_[i];
    work.doubtful = &work.signature->covariance;
    if (window.parts[i].message.empty()) continue;  // no message
    const Roster::Seat& seat = window.roster->seats()[i];
    work.doubtful = &seat.belief->moments_by_itself().covariance;
    const double weight = square(work.time);
    if (weight >= kNothing) noise_now += weight * (*work.doubtful - work.signature->covariance);
  }
  return noise_now;
}

void WindowSolver::spread_of_all(const Window& window, const FeatureMatrix& noise_now, double spent) {
  const JointMatrix noise_root = inverse_root_of(joint_of(noise_now, 1));
  const JointMatrix times_root = inverse_root_of(with_open_times(window, noise_now));
  spreads_.resize(work_.size());
  for (size_t i = 0; i < work_.size(); ++i) {
    const Work& work = work_[i];
    const double watts = work.signature->mean[kPower];
    Spread& part = spreads_[i];
    part.share = work.spent / spent;
    part.own = square(watts) * work.prior_variance + square(work.time) * (*work.doubtful)(kPower, kPower);
    const Joint effect = watts * work.prior_variance * Eigen::Map<const Joint>(variables_[i].effect.data());
    part.by_times = times_root.lazyProduct(effect);
    const Joint power = joint_of(Features(square(work.time) * work.doubtful->col(kPower)), 0);
    part.by_signatures = noise_root.lazyProduct(power);
  }
}

// The energy of a process is uncertain because its time and its signature are. The covariance of all energies is
// diagonal minus two terms of low rank (explained by the readings), so the variance of any sum takes time linear in
// the processes. The total is known, so an error of one process is an error of the others too.
void WindowSolver::estimate_errors(Window& window, const FeatureMatrix& noise_now) {
  window.owner_errors.clear();
  for (Window::Part& part : window.parts) part.error = 0;
  if (window.parts.size() < 2 || window.joules <= 0) return;
  double spent = 0;
  for (const Work& work : work_) spent += work.spent;
  if (spent <= 0) return;
  spread_of_all(window, doubtful_noise(window, noise_now), spent);
  Spread all;
  for (const Spread& part : spreads_) all += part;
  const auto error_of = [&](const Spread& sum) {
    const double variance = sum.own * (1 - 2 * sum.share) + square(sum.share) * all.own -
                            (sum.by_times - sum.share * all.by_times).squaredNorm() -
                            (sum.by_signatures - sum.share * all.by_signatures).squaredNorm();
    // At most the error of the worst case: one of them used everything, with its share as the probability.
    const double most = std::max(0.0, sum.share * (1 - sum.share));
    return window.joules * std::sqrt(std::clamp(variance / square(spent), 0.0, most));
  };
  for (size_t i = 0; i < work_.size(); ++i) window.parts[i].error = error_of(spreads_[i]);
  const std::vector<Roster::Seat>& seats = window.roster->seats();
  const std::vector<uint32_t>& order = window.roster->table->by_owner;
  for (size_t first = 0; first < order.size();) {
    const uint64_t owner = seats[order[first]].owner;
    size_t next = first + 1;
    while (next < order.size() && seats[order[next]].owner == owner) ++next;
    double error = window.parts[order[first]].error;
    if (next > first + 1) {
      Spread sum;
      for (size_t i = first; i < next; ++i) sum += spreads_[order[i]];
      error = error_of(sum);
    }
    window.owner_errors.push_back({owner, error});
    first = next;
  }
}

// The readings, with the sum of all times, that the time evidence alone predicts, and their covariance.
WindowSolver::TimePrior WindowSolver::time_prior(const Window& window) const {
  const Eigen::Map<const JointMatrix> effects(dual_.effects.front().data());
  const Features along = effects.col(kFeatures).head<kFeatures>();
  const double variance_sum = effects(kFeatures, kFeatures);
  const double gain = sums_to_busy(window) ? 1 / (square(busy_error(window)) + variance_sum) : 0;
  const double missing = window.busy - expected_[kFeatures];
  return {expected_.head<kFeatures>() + gain * missing * along,
          effects.topLeftCorner<kFeatures, kFeatures>() - gain * along * along.transpose()};
}

// To each signature: the readings minus the parts of all other processes, with the uncertainty of their signatures and
// of all times.
void WindowSolver::send_messages(Window& window, const FeatureMatrix& noise_now) {
  Roster& roster = *window.roster;
  const TimePrior times = time_prior(window);
  const FeatureMatrix base = noise_now + times.by_time;
  for (size_t i = 0; i < work_.size(); ++i) {
    const Work& work = work_[i];
    Window::Part& part = window.parts[i];
    Message now;
    const bool teaches = work.time >= kLeastTaught;
    if (teaches) {
      const FeatureMatrix precision = inverse_of(base - square(work.time) * work.signature->covariance);
      const Features rest = window.shown - times.expected + work.time * work.signature->mean;
      now = Message(square(work.time) * precision, work.time * (precision * rest));
    }
    if (!teaches && part.message.empty()) continue;
    const Roster::Seat& seat = roster.seats()[i];
    seat.belief->replace(part.message, now, window.parts.size() > 1);
    part.message = std::move(now);
  }
}

WindowSolver::Fit WindowSolver::fit(Window& window, size_t seat, const SignatureBelief* belief, bool open_times) {
  take_out_own_message(window);
  weigh_time_evidence(window);
  // With samples, a share may be wrong instead of a signature. So only signatures from windows with one process count.
  if (!window.traced) {
    for (size_t i = 0; i < work_.size(); ++i)
      work_[i].signature = &window.roster->seats()[i].belief->moments_by_itself();
  }
  if (belief) work_[seat].signature = window.traced ? &belief->moments() : &belief->moments_by_itself();
  if (open_times) {
    constexpr double kAnyShare = 0.35;  // of a share between 0 and 1
    for (Work& work : work_) {
      work.prior_time = window.busy / static_cast<double>(work_.size());
      work.prior_variance = square(kAnyShare * window.busy);
    }
  }
  for (Work& work : work_) {
    work.time = work.prior_time;
    work.time_variance = work.prior_variance;
  }
  sum_up_time_evidence();
  const TimePrior times = time_prior(window);
  const FeatureMatrix spread = noise(window, Noise::kTimesOpen) + times.by_time;
  const Eigen::LLT<FeatureMatrix> root(spread);
  const double squares = root.matrixL().solve(window.shown - times.expected).squaredNorm();
  Fit fit;
  double known = 0;
  for (int f = 0; f < kFeatures; ++f) {
    if (window.variance[f] < kNoMatter) ++known;
    fit.log_evidence -= std::log(root.matrixLLT()(f, f));
  }
  fit.log_evidence -= squares / 2;
  fit.misfit = squares / std::max(1.0, known);
  return fit;
}

}  // namespace gpuledger::attribute
