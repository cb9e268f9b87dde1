// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/learner.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numeric>

namespace gpuledger::attribute {
namespace {

std::vector<Features> signatures_of(const Window& window, const Posterior& posterior) {
  std::vector<Features> means;
  means.reserve(window.parts.size());
  for (const Window::Part& part : window.parts) means.push_back(posterior.mean(part.signature).cwiseMax(0.0));
  return means;
}

// Only processes with a large share can change the readings much.
std::vector<size_t> busiest(const Window& window) {
  constexpr size_t kMost = 8;
  std::vector<size_t> order(window.parts.size());
  std::iota(order.begin(), order.end(), 0);
  const auto busier = [&](size_t a, size_t b) { return window.parts[a].expected > window.parts[b].expected; };
  const size_t most = std::min(kMost, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end(), busier);
  order.resize(most);
  return order;
}

// Some windows of one company as one.
Window mean_of(const std::deque<Window>& history, size_t windows) {
  Window mean = history.back();
  const auto since = history.end() - static_cast<std::ptrdiff_t>(windows);
  double seconds = 0;  // there may be a pause between them
  std::for_each(since, history.end(), [&](const Window& window) { seconds += window.seconds(); });
  mean.begin = mean.end - seconds;
  mean.shown.setZero();
  mean.variance.setZero();
  mean.sum_variance = 0;
  for (Window::Part& part : mean.parts) part.expected = part.variance = 0;
  for (auto window = since; window != history.end(); ++window) {
    const double weight = window->seconds() / seconds;
    mean.shown += weight * window->shown;
    mean.variance += square(weight) * window->variance;
    mean.sum_variance += square(weight) * window->sum_variance;
    for (size_t i = 0; i < mean.parts.size(); ++i) {
      mean.parts[i].expected += weight * window->parts[i].expected;
      mean.parts[i].variance += square(weight) * window->parts[i].variance;
    }
  }
  return mean;
}

std::vector<double> facts_of(const std::deque<Window>& history, size_t windows) {
  std::vector<double> facts(history.back().parts.size());
  for (auto window = history.end() - static_cast<std::ptrdiff_t>(windows); window != history.end(); ++window) {
    for (size_t i = 0; i < facts.size(); ++i) facts[i] += window->parts[i].facts;
  }
  return facts;
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

}  // namespace

void Learner::learn(std::deque<Window>& history) {
  const Window& newest = history.back();
  if (newest.company != company_) before_.clear();
  before_.push_back(posterior_);
  take_in(newest);
  const auto windows = static_cast<size_t>(constants_.change_windows);
  if (before_.size() > windows) before_.pop_front();
  if (before_.size() < windows || history.size() <= windows) return;
  const auto change = find_change(history, windows);
  if (!change) return;
  posterior_.go_back_to(before_.front());
  before_.clear();
  learned_until_ = history[history.size() - windows - 1].end;
  const auto since = history.end() - static_cast<std::ptrdiff_t>(windows);
  if (change->part) {
    const SignatureId now = change->to ? *change->to : posterior_.add(signatures_.prior());
    signatures_.change(newest.parts[*change->part].process, now);
    std::for_each(since, history.end(), [&](Window& window) { window.parts[*change->part].signature = now; });
  } else {
    newest.company->facts = facts_of(history, windows);
    std::for_each(since, history.end(), [&](Window& window) { expect_times(window, posterior_, constants_); });
  }
  std::for_each(since, history.end(), [&](const Window& window) { take_in(window); });
}

// Shares by samples move by chance while the readings stay, as if all processes were alike; and nothing tells whose
// signature changes slowly. So hours together teach, and forget, little more than the first seconds of the newest of
// them.
double Learner::length_of_a_second(const Window& window) const {
  if (!window.shared()) return 1;
  double together = HUGE_VAL;
  for (const Window::Part& part : window.parts)
    together = std::min(together, posterior_.seconds_learned(part.signature));
  return 1 / std::max(1.0, together / constants_.company_memory);
}

void Learner::take_in(const Window& window) {
  const double length = length_of_a_second(window);
  const std::vector<Features> means = signatures_of(window, posterior_);
  // Another company deviates in another way.
  const double kept =
      window.company == company_ ? std::exp(-(window.end - learned_until_) / constants_.deviation_memory) : 0;
  company_ = window.company;
  learned_until_ = window.end;
  const FeatureMatrix usual = window.deviation.cwiseAbs2().asDiagonal();
  posterior_.let_deviation_fade(kept, usual + spread_by_times(window, means, TimeErrors::kLasting));
  FeatureMatrix noise = window.variance.asDiagonal();
  noise += spread_by_times(window, means, TimeErrors::kPassing);
  std::vector<Posterior::Worker> workers;
  workers.reserve(window.parts.size());
  for (size_t i = 0; i < window.parts.size(); ++i) {
    const Window::Part& part = window.parts[i];
    workers.push_back({part.signature, part.expected});
    const double worked = std::min(1.0, part.expected * static_cast<double>(window.parts.size()));
    const double change = constants_.fading * window.seconds() * worked * length;
    posterior_.widen(part.signature, change * signatures_.prior().covariance);
    posterior_.add_covariance(part.signature, window.covariance(i, i), noise);
  }
  if (window.blind) return;
  if (!window.traced) noise /= length;
  for (const Posterior::Worker& worker : workers)
    posterior_.note_company(worker.id, window.company.get(), window.seconds());
  posterior_.learn(workers, window.shown, noise);
  posterior_.respect_bounds(workers, constants_.highest);
}

// A process that changes what it does often gets another share of the time as well. With the trace, that is seen.
double Learner::required_gain(const Window& before, const Window& now, std::optional<size_t> part) const {
  if (!now.traced || before.company != now.company || !part) return constants_.change_odds;
  const double moved = std::abs(now.parts[*part].expected - before.parts[*part].expected);
  return constants_.change_odds * (1 - std::min(1.0, moved / constants_.change_of_time));
}

// Explains the mean of the newest windows by what was known before them. One window alone may be odd: its readings do
// not begin and end at the same moment.
std::optional<Learner::Change> Learner::find_change(const std::deque<Window>& history, size_t windows) const {
  const auto newest = history.end() - static_cast<std::ptrdiff_t>(windows);
  const auto odd = [](const Window& window) { return window.blind || !window.shared() || window.company->mps; };
  if (std::any_of(newest, history.end(), odd)) return std::nullopt;
  const Posterior& known = before_.front();
  const Window window = mean_of(history, windows);
  for (const Window::Part& part : window.parts) {
    if (!known.has(part.signature)) return std::nullopt;
  }
  const Explainer explainer(window, known);
  const double now = explainer.log_evidence();
  const Window& before = *std::prev(newest);
  std::optional<Change> found;
  double best = 0, next = -1e9;  // next: of another process
  const auto consider = [&](const Change& change, double evidence) {
    const double gain = evidence - now - required_gain(before, window, change.part);
    const bool same = found && found->part == change.part;
    if (gain > best) {
      if (found && !same) next = std::max(next, best);
      best = gain;
      found = change;
    } else if (!same) {
      next = std::max(next, gain);
    }
  };
  for (const size_t part : busiest(window)) {
    consider({part, {}}, explainer.log_evidence_with(part, {}, signatures_.prior()));
    for (const SignatureId id : signatures_.earlier(window.parts[part].process)) {
      if (id != window.parts[part].signature && known.has(id))
        consider({part, id}, explainer.log_evidence_with(part, id, signatures_.prior()));
    }
  }
  if (!window.traced) {
    Window open = window;
    open.company = std::make_shared<Company>(*window.company);
    open.company->facts = facts_of(history, windows);
    expect_times(open, known, constants_);
    consider({}, Explainer(open, known).log_evidence());
  }
  if (best - next < constants_.change_lead) return std::nullopt;
  return found;
}

}  // namespace gpuledger::attribute
