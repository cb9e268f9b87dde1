#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "attribute/estimate/window_solver.h"

// The part of the solver that says how sure it is, and what the window teaches.
namespace gpuledger::attribute {
namespace {

double square(double x) {
  return x * x;
}

}  // namespace

// What each is estimated to have spent is uncertain because its time is and because its signature is. The covariance of
// all of them is diagonal less two terms of low rank (what the readings explain), so the variance of any sum of them
// takes time linear in the processes. Shares out of a known total: an error of one is an error of the others too.
void WindowSolver::estimate_errors(Window& window) {
  using Explained = Eigen::Matrix<double, 2 * kFeatures + 1, 1>;
  struct Spread {
    double own = 0;
    Explained explained = Explained::Zero();
    double share = 0;
    Spread& operator+=(const Spread& other) {
      own += other.own;
      explained += other.explained;
      share += other.share;
      return *this;
    }
  };
  window.owner_errors.clear();
  for (Window::Part& part : window.parts) part.error = 0;
  if (window.parts.size() < 2 || window.joules <= 0) return;
  const Roster& roster = *window.roster;
  double spent = 0;
  for (size_t i = 0; i < work_.size(); ++i) {
    spent += work_[i].spent;
    // Errors of shares last as long as the roster, so all its windows tell as much of the signatures as one of them.
    const bool learns = !window.parts[i].message.empty();
    work_[i].doubtful =
        learns ? inverse_of(roster.seats[i].belief->precision() - roster.seats[i].said) : work_[i].signature.covariance;
  }
  if (spent <= 0) return;
  const FeatureMatrix noise_now = noise(window, Noise::kDoubtful);
  const Eigen::LLT<FeatureMatrix> noise_root(noise_now);
  JointMatrix gram = JointMatrix::Zero();
  gram.topLeftCorner<kFeatures, kFeatures>() = noise_now;
  gram(kFeatures, kFeatures) = square(sums_to_busy(window) ? busy_error(window) : kNoMatter);
  Joint effect;
  for (const Work& work : work_) {
    effect << work.signature.mean, 1;
    gram += work.prior_variance * effect * effect.transpose();
  }
  const Eigen::LLT<JointMatrix> gram_root(gram);

  Spread all;
  std::vector<Spread> parts(work_.size());
  for (size_t i = 0; i < work_.size(); ++i) {
    const Work& work = work_[i];
    const double watts = work.signature.mean[kPower];
    effect << work.signature.mean, 1;
    Spread& part = parts[i];
    part.share = work.spent / spent;
    part.own = square(watts) * work.prior_variance +
               square(work.time) * (work.doubtful(kPower, kPower) + square(constants_.signature_wander * watts));
    part.explained << gram_root.matrixL().solve(watts * work.prior_variance * effect),
        noise_root.matrixL().solve(square(work.time) * work.doubtful.col(kPower));
    all += part;
  }
  const auto error_of = [&](const Spread& sum) {
    const double variance = sum.own * (1 - 2 * sum.share) + square(sum.share) * all.own -
                            (sum.explained - sum.share * all.explained).squaredNorm();
    // No wider than if one of them had spent everything, with odds like the shares.
    const double most = std::max(0.0, sum.share * (1 - sum.share));
    return window.joules * std::sqrt(std::clamp(variance / square(spent), 0.0, most));
  };
  for (size_t i = 0; i < work_.size(); ++i) window.parts[i].error = error_of(parts[i]);
  std::vector<size_t> by_owner(work_.size());
  std::iota(by_owner.begin(), by_owner.end(), 0);
  const auto owner = [&](size_t i) { return roster.seats[i].owner; };
  std::sort(by_owner.begin(), by_owner.end(), [&](size_t a, size_t b) { return owner(a) < owner(b); });
  for (size_t first = 0; first < by_owner.size();) {
    Spread sum;
    size_t next = first;
    for (; next < by_owner.size() && owner(by_owner[next]) == owner(by_owner[first]); ++next)
      sum += parts[by_owner[next]];
    window.owner_errors.push_back({owner(by_owner[first]), error_of(sum)});
    first = next;
  }
}

// What the time evidence alone expects to be shown, the sum of all times included, and how uncertain that is.
WindowSolver::TimePrior WindowSolver::time_prior(const Window& window) const {
  double time_sum = 0, variance_sum = 0;
  for (const Work& work : work_) {
    time_sum += work.prior_time;
    variance_sum += work.prior_variance;
  }
  const double gain = sums_to_busy(window) ? 1 / (square(busy_error(window)) + variance_sum) : 0;
  const double missing = window.busy - time_sum;
  TimePrior times{Features::Zero(), FeatureMatrix::Zero()};
  Features along = Features::Zero();
  for (const Work& work : work_) {
    const Features& mean = work.signature.mean;
    times.expected += (work.prior_time + work.prior_variance * gain * missing) * mean;
    times.by_time += work.prior_variance * mean * mean.transpose();
    along += work.prior_variance * mean;
  }
  times.by_time -= gain * along * along.transpose();
  return times;
}

// To each signature: what is left of the readings when all others have taken their part, with the uncertainty of their
// signatures and of all times.
void WindowSolver::send_messages(Window& window) {
  Roster& roster = *window.roster;
  const TimePrior times = time_prior(window);
  // Errors of the trace do not last from window to window; those of the samples do.
  const double lasting = window.traced ? 0 : constants_.share_persistence * (roster.windows - 1);
  const FeatureMatrix base = noise(window, Noise::kTimesGiven) + (1 + lasting) * times.by_time;
  for (size_t i = 0; i < work_.size(); ++i) {
    const Work& work = work_[i];
    Window::Part& part = window.parts[i];
    Message now;
    const bool teaches = work.time >= constants_.least_time;
    if (teaches) {
      const FeatureMatrix precision = inverse_of(base - square(work.time) * work.signature.covariance);
      const Features rest = window.shown - times.expected + work.time * work.signature.mean;
      now = Message(square(work.time) * precision, work.time * (precision * rest));
    }
    if (!teaches && part.message.empty()) continue;
    Roster::Seat& seat = roster.seats[i];
    seat.belief->replace(part.message, now, window.parts.size() > 1);
    seat.said += now.precision() - part.message.precision();
    part.message = now;
  }
}

WindowSolver::Fit WindowSolver::fit(Window& window, size_t seat, const SignatureBelief* belief, bool open_times) {
  take_out_own_message(window);
  weigh_time_evidence(window);
  for (size_t i = 0; i < work_.size(); ++i) work_[i].signature = window.roster->seats[i].belief->moments_by_itself();
  if (belief) work_[seat].signature = belief->moments_by_itself();
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
