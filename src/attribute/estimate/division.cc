// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/division.h"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace gpuledger::attribute {
namespace {

// One window while it is divided.
class Division {
 public:
  Division(const Window& window, const Posterior& posterior, const Constants& constants);
  // joules and errors of the window's parts
  void charge(Window& window) const;
  void estimate_errors(Window& window) const;

 private:
  void find_times(double longest);
  void find_energies();
  double variance_of(const std::vector<size_t>& parts) const;

  const Window& window_;
  const Posterior& posterior_;
  std::vector<Posterior::Worker> workers_;
  std::vector<Features> means_;  // of the signatures, not below 0
  Features readings_;            // variance of the readings
  // The times by all evidence. Their covariance is that of the time evidence, minus what the readings explain.
  std::vector<Features> with_readings_;
  FeatureMatrix explained_ = FeatureMatrix::Zero();
  Posterior::Sum sum_;
  std::vector<double> watts_;    // of each while it is busy, as power feature
  std::vector<double> energy_;   // in the window, likewise
  std::vector<double> lasting_;  // variance of the energy that no evidence in company takes away
};

Division::Division(const Window& window, const Posterior& posterior, const Constants& constants)
    : window_(window), posterior_(posterior), readings_(window.variance + window.deviation.cwiseAbs2()) {
  for (const Window::Part& part : window.parts) {
    workers_.push_back({part.signature, part.expected});
    means_.push_back(posterior.mean(part.signature).cwiseMax(0.0));
  }
  find_times(window.company->mps ? constants.mps_most * window.busy : 1);
  find_energies();
  // Those who are never apart make each other look certain. One of them among others is known by what the others leave.
  const auto is_stranger = [&](const Posterior::Worker& worker) {
    return posterior.seconds_elsewhere(worker.id) < constants.stranger_seconds;
  };
  const bool strangers = std::count_if(workers_.begin(), workers_.end(), is_stranger) > 1;
  for (size_t i = 0; i < workers_.size(); ++i) {
    const bool stranger = strangers && is_stranger(workers_[i]);
    lasting_.push_back(square((stranger ? constants.stranger_error : constants.company_error) * energy_[i]));
  }
}

// The times that the evidence and the readings make most likely. Errors of the signatures depend on the times, so
// twice.
void Division::find_times(double longest) {
  const size_t count = workers_.size();
  Features all = Features::Zero();
  Features shown = window_.shown;
  for (size_t i = 0; i < count; ++i) {
    all += window_.parts[i].variance * means_[i];
    shown -= window_.parts[i].expected * means_[i];
  }
  std::vector<double> variances(count);
  with_readings_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    variances[i] = window_.covariance(i, i);
    const double variance = window_.parts[i].variance;
    with_readings_[i] = variance * means_[i];
    if (window_.sum_variance > 0) with_readings_[i] -= variance / window_.sum_variance * all;
  }
  if (window_.blind) return;
  const FeatureMatrix by_times = spread_by_times(window_, means_, TimeErrors::kAll);
  for (int round = 0; round < 2; ++round) {
    FeatureMatrix spread = by_times + posterior_.sum(workers_).spread;
    spread += readings_.asDiagonal();
    for (size_t i = 0; i < count; ++i) posterior_.add_covariance(workers_[i].id, variances[i], spread);
    explained_ = spread.inverse();
    const Features pull = explained_ * shown;
    for (size_t i = 0; i < count; ++i) {
      workers_[i].time = std::clamp(window_.parts[i].expected + with_readings_[i].dot(pull), 0.0, longest);
      variances[i] = window_.covariance(i, i) - with_readings_[i].dot(explained_ * with_readings_[i]);
    }
  }
}

// The readings differ from the sum of the signatures. Of that, each signature takes its part, by its uncertainty; the
// rest belongs to all, by their times.
void Division::find_energies() {
  sum_ = posterior_.sum(workers_);
  double rest = 0;
  Features pull = Features::Zero();
  if (!window_.blind) {
    Features expected = Features::Zero();
    for (size_t i = 0; i < workers_.size(); ++i) expected += workers_[i].time * means_[i];
    FeatureMatrix spread = sum_.spread;
    spread += readings_.asDiagonal();
    pull = spread.inverse() * (window_.shown - expected);
    rest = readings_[kPower] * pull[kPower];
  }
  double times = 0;
  for (const Posterior::Worker& worker : workers_) times += worker.time;
  for (size_t i = 0; i < workers_.size(); ++i) {
    const double own = posterior_.covariance_with(sum_, workers_[i]).row(kPower).dot(pull);
    watts_.push_back(std::max(0.0, means_[i][kPower] + own));
    const double of_rest = times > 0 ? rest / times : 0;
    energy_.push_back(workers_[i].time * std::max(0.0, watts_.back() + of_rest));
  }
}

// The measured joules are divided in proportion to the estimated ones.
void Division::charge(Window& window) const {
  std::vector<double> shares = energy_;
  const auto total = [&] { return std::accumulate(shares.begin(), shares.end(), 0.0); };
  for (size_t i = 0; total() <= 0 && i < shares.size(); ++i) shares[i] = window_.parts[i].expected;
  if (total() <= 0) shares.assign(shares.size(), 1);
  const double sum = total();
  for (size_t i = 0; i < shares.size(); ++i) window.parts[i].joules = window.joules * shares[i] / sum;
}

// Of the sum of some energies.
double Division::variance_of(const std::vector<size_t>& parts) const {
  std::vector<Posterior::Worker> workers;
  Features with_readings = Features::Zero();
  double own = 0, all = 0;
  for (const size_t i : parts) {
    workers.push_back(workers_[i]);
    own += window_.parts[i].variance * square(watts_[i]) + lasting_[i];
    all += window_.parts[i].variance * watts_[i];
    with_readings += watts_[i] * with_readings_[i];
  }
  if (window_.sum_variance > 0) own -= square(all) / window_.sum_variance;
  return own - with_readings.dot(explained_ * with_readings) + posterior_.power_variance(workers);
}

// The energy of a process is uncertain because its time and its signature are. The total is known, so an error of one
// process is an error of the others too.
void Division::estimate_errors(Window& window) const {
  const double spent = std::accumulate(energy_.begin(), energy_.end(), 0.0);
  if (spent <= 0 || window.joules <= 0) return;
  Features all_with_readings = Features::Zero();
  double all_variance = 0;
  for (size_t i = 0; i < workers_.size(); ++i) {
    all_with_readings += watts_[i] * with_readings_[i];
    all_variance += window_.parts[i].variance * watts_[i];
  }
  std::vector<double> with_all(workers_.size());  // covariance of each energy with the sum of all
  double variance_of_all = 0;
  for (size_t i = 0; i < workers_.size(); ++i) {
    double time = window_.parts[i].variance * watts_[i];
    if (window_.sum_variance > 0) time -= window_.parts[i].variance / window_.sum_variance * all_variance;
    time -= with_readings_[i].dot(explained_ * all_with_readings);
    const double signature = posterior_.covariance_with(sum_, workers_[i])(kPower, kPower);
    with_all[i] = watts_[i] * time + workers_[i].time * signature + lasting_[i];
    variance_of_all += with_all[i];
  }
  const auto error_of = [&](const std::vector<size_t>& parts) {
    double share = 0, with = 0;
    for (const size_t i : parts) share += energy_[i] / spent, with += with_all[i];
    const double variance = variance_of(parts) - 2 * share * with + square(share) * variance_of_all;
    // At most the error of the worst case: one of them used everything, with its share as the probability.
    const double most = share * std::max(0.0, 1 - share);
    return window.joules * std::sqrt(std::clamp(variance / square(spent), 0.0, most));
  };
  std::map<uint64_t, std::vector<size_t>> owners;
  for (size_t i = 0; i < workers_.size(); ++i) {
    owners[window.parts[i].owner].push_back(i);
    window.parts[i].error = error_of({i});
  }
  for (const auto& [owner, parts] : owners) {
    const double error = parts.size() == 1 ? window.parts[parts.front()].error : error_of(parts);
    window.owner_errors.push_back({owner, error});
  }
}

}  // namespace

void divide(Window& window, const Posterior& posterior, const Constants& constants) {
  window.owner_errors.clear();
  for (Window::Part& part : window.parts) part.error = 0;
  if (!window.shared()) {
    window.parts.front().joules = window.joules;
    return;
  }
  const Division division(window, posterior, constants);
  division.charge(window);
  division.estimate_errors(window);
}

}  // namespace gpuledger::attribute
