// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/change_search.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

namespace gpuledger::attribute {
namespace {

// Only a process with a large share of the time can change the readings by more than their error. A new one has nothing
// to change from.
std::vector<size_t> parts_that_matter(const Window& window, const Posterior& known, const Belief& prior,
                                      const Constants& constants) {
  constexpr size_t kMost = 8;
  const double least = constants.reading_error / std::sqrt(prior.covariance(kPower, kPower));
  std::vector<size_t> parts;
  for (size_t part = 0; part < window.parts.size(); ++part) {
    if (window.parts[part].expected > least && known.seconds_learned(window.parts[part].signature) > 0)
      parts.push_back(part);
  }
  const auto busier = [&](size_t a, size_t b) { return window.parts[a].expected > window.parts[b].expected; };
  std::sort(parts.begin(), parts.end(), busier);
  if (parts.size() > kMost) parts.resize(kMost);
  return parts;
}

// Explains a window by what was known before it, or with another signature for one process.
class Explainer {
 public:
  Explainer(const Window& window, const Posterior& known) : window_(window), known_(known) {
    for (const Window::Part& part : window.parts) workers_.push_back({part.signature, part.expected});
    sum_ = known.sum(workers_);
    rest_ = window.shown - sum_.mean;
    spread_ = sum_.spread;
    spread_ += window.variance.asDiagonal();
    spread_ += window.deviation.cwiseAbs2().asDiagonal();
    for (size_t i = 0; i < workers_.size(); ++i) add_time_error(i, belief_of(workers_[i].id), 1);
  }

  double log_evidence() const {
    FeatureMatrix spread = spread_;
    if (window_.sum_variance > 0) spread -= all_ * all_.transpose() / window_.sum_variance;
    const Eigen::LLT<FeatureMatrix> root(spread);
    double sum = root.matrixL().solve(rest_).squaredNorm() / 2;
    for (int f = 0; f < kFeatures; ++f) sum += std::log(root.matrixLLT()(f, f));
    return -sum;
  }
  // Empty: a new signature, independent of the others.
  double log_evidence_with(size_t part, std::optional<SignatureId> id, const Belief& prior) const {
    Explainer other = *this;
    const Posterior::Worker& worker = workers_[part];
    const Belief now = belief_of(worker.id), then = id ? belief_of(*id) : prior;
    other.add_time_error(part, now, -1);
    other.add_time_error(part, then, 1);
    other.rest_ += worker.time * (now.mean - then.mean);
    other.spread_ += square(worker.time) * (now.covariance + then.covariance);
    other.add_covariance(-worker.time * known_.covariance_with(sum_, worker));
    if (id) {
      const FeatureMatrix with_all = known_.covariance_with(sum_, {*id, 0});
      other.add_covariance(worker.time * (with_all - worker.time * known_.covariance(*id, worker.id)));
    }
    return other.log_evidence();
  }

 private:
  Belief belief_of(SignatureId id) const { return {known_.mean(id), known_.covariance(id)}; }
  void add_covariance(const FeatureMatrix& covariance) { spread_ += covariance + covariance.transpose(); }
  // sign: -1 takes it away
  void add_time_error(size_t part, const Belief& belief, double sign) {
    const Features mean = belief.mean.cwiseMax(0.0);
    const double variance = window_.parts[part].variance;
    const Features weighted = sign * variance * mean;
    spread_.noalias() += weighted * mean.transpose();
    spread_ += sign * window_.covariance(part, part) * belief.covariance;
    all_ += weighted;
  }

  const Window& window_;
  const Posterior& known_;
  std::vector<Posterior::Worker> workers_;
  Posterior::Sum sum_;
  Features rest_;  // what the readings show beyond what is expected
  FeatureMatrix spread_;
  Features all_ = Features::Zero();
};

// A process that changes what it does often gets another share of the time as well. With the trace, that is seen.
double cost_of_change(const Window& previous, const Window& window, size_t part, const Constants& constants) {
  if (!window.traced || previous.company != window.company) return constants.change_odds;
  const double moved = std::abs(window.parts[part].expected - previous.parts[part].expected);
  return constants.change_odds * (1 - std::min(1.0, moved / constants.change_of_time));
}

// By the samples of the window alone.
Window with_own_shares(const Window& window, const Posterior& known, const Constants& constants) {
  Window own = window;
  own.company = std::make_shared<Company>(*window.company);
  own.company->facts = facts_of(window);
  expect_times(own, known, constants);
  return own;
}

}  // namespace

std::vector<Change> likely_changes(const Window& window, const Window& previous, const Explanation& known,
                                   const Belief& prior, const Constants& constants) {
  std::vector<Change> changes;
  if (window.blind || !window.shared() || window.company->mps) return changes;
  const std::vector<size_t> parts = parts_that_matter(window, known.posterior(), prior, constants);
  if (parts.empty()) return changes;
  const Explainer explainer(window, known.posterior());
  const double now = explainer.log_evidence();
  for (const size_t part : parts) {
    const double cost = cost_of_change(previous, window, part, constants);
    const auto consider = [&](std::optional<SignatureId> to) {
      changes.push_back({part, to, cost, explainer.log_evidence_with(part, to, prior) - now - cost});
    };
    consider({});
    for (const SignatureId id : known.earlier(window.parts[part].process)) consider(id);
  }
  if (!window.traced) {
    const Window own = with_own_shares(window, known.posterior(), constants);
    const double gain = Explainer(own, known.posterior()).log_evidence() - now - constants.change_odds;
    changes.push_back({{}, {}, constants.change_odds, gain});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.gain > b.gain; });
  return changes;
}

}  // namespace gpuledger::attribute
