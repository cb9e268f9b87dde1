// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/posterior.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <utility>

namespace gpuledger::attribute {

Features Posterior::mean_of(const Entry& entry) const {
  if (entry.place == kNotTogether) return entry.alone.mean;
  return mean_.segment<kFeatures>(entry.place);
}

FeatureMatrix Posterior::covariance_of(const Entry& entry) const {
  if (entry.place == kNotTogether) return entry.alone.covariance;
  return covariance_.block<kFeatures, kFeatures>(entry.place, entry.place);
}

Features Posterior::mean(SignatureId id) const {
  return mean_of(entries_[id]);
}

FeatureMatrix Posterior::covariance(SignatureId a, SignatureId b) const {
  const Entry& first = entries_[a];
  if (a == b) return covariance_of(first);
  const Entry& second = entries_[b];
  if (first.place == kNotTogether || second.place == kNotTogether) return FeatureMatrix::Zero();
  return covariance_.block<kFeatures, kFeatures>(first.place, second.place);
}

void Posterior::add_covariance(SignatureId id, double factor, FeatureMatrix& sum) const {
  const Entry& entry = entries_[id];
  if (entry.place == kNotTogether) {
    sum += factor * entry.alone.covariance;
  } else {
    sum += factor * covariance_.block<kFeatures, kFeatures>(entry.place, entry.place);
  }
}

SignatureId Posterior::add(const Belief& prior) {
  const auto unused = std::find_if(entries_.begin(), entries_.end(), [](const Entry& entry) { return !entry.used; });
  const auto id = static_cast<SignatureId>(unused - entries_.begin());
  if (unused == entries_.end()) entries_.emplace_back();
  Entry& entry = entries_[id] = Entry();
  entry.used = true;
  entry.alone = prior;
  if (together_.size() < most_together_) put_together(id, entry);
  note_revision(entry);
  return id;
}

void Posterior::put_together(SignatureId id, Entry& entry) {
  const auto size = mean_.size();
  mean_.conservativeResize(size + kFeatures);
  covariance_.conservativeResize(size + kFeatures, size + kFeatures);
  covariance_.rightCols<kFeatures>().setZero();
  covariance_.bottomRows<kFeatures>().setZero();
  mean_.tail<kFeatures>() = entry.alone.mean;
  covariance_.bottomRightCorner<kFeatures, kFeatures>() = entry.alone.covariance;
  entry.place = static_cast<int>(size);
  together_.push_back(id);
}

// The last one moves to its place.
void Posterior::take_apart(Entry& entry) {
  entry.alone = {mean_of(entry), covariance_of(entry)};
  const auto last = static_cast<int>(mean_.size()) - kFeatures;
  if (entry.place != last) {
    mean_.segment<kFeatures>(entry.place) = mean_.tail<kFeatures>();
    covariance_.middleRows<kFeatures>(entry.place) = covariance_.bottomRows<kFeatures>().eval();
    covariance_.middleCols<kFeatures>(entry.place) = covariance_.rightCols<kFeatures>().eval();
    entries_[together_.back()].place = entry.place;
    together_[static_cast<size_t>(entry.place / kFeatures - 1)] = together_.back();
  }
  together_.pop_back();
  mean_.conservativeResize(last);
  covariance_.conservativeResize(last, last);
  entry.place = kNotTogether;
}

void Posterior::keep_only(const std::set<SignatureId>& used) {
  for (SignatureId id = 0; id < entries_.size(); ++id) {
    if (!entries_[id].used || used.contains(id)) continue;
    if (entries_[id].place != kNotTogether) take_apart(entries_[id]);
    entries_[id].used = false;
  }
}

// One that is not together with the others takes the place of one with less than half of its GPU time.
void Posterior::choose_those_together(std::span<const Worker> workers) {
  constexpr double kMemory = 0.95;  // of a weight, each window
  for (const SignatureId id : together_) entries_[id].weight *= kMemory;
  for (const Worker& worker : workers) {
    Entry& entry = entries_[worker.id];
    if (entry.place == kNotTogether) entry.weight *= kMemory;
    entry.weight += (1 - kMemory) * worker.time;
  }
  const auto lighter = [&](SignatureId a, SignatureId b) { return entries_[a].weight < entries_[b].weight; };
  for (const Worker& worker : workers) {
    Entry& entry = entries_[worker.id];
    if (entry.place != kNotTogether) continue;
    if (most_together_ == 0) continue;
    if (together_.size() == most_together_) {
      Entry& least = entries_[*std::min_element(together_.begin(), together_.end(), lighter)];
      if (entry.weight < 2 * least.weight) continue;
      take_apart(least);
    }
    put_together(worker.id, entry);
  }
}

void Posterior::let_deviation_fade(double kept, const FeatureMatrix& spread) {
  mean_.head<kFeatures>() *= kept;
  covariance_.topRows<kFeatures>() *= kept;
  covariance_.leftCols<kFeatures>() *= kept;
  covariance_.topLeftCorner<kFeatures, kFeatures>() += (1 - square(kept)) * spread;
}

void Posterior::widen(SignatureId id, const FeatureMatrix& by) {
  Entry& entry = entries_[id];
  if (entry.place == kNotTogether) {
    entry.alone.covariance += by;
  } else {
    covariance_.block<kFeatures, kFeatures>(entry.place, entry.place) += by;
  }
}

void Posterior::note_company(SignatureId id, const void* company, double seconds) {
  Entry& entry = entries_[id];
  if (entry.company != company) entry.elsewhere += std::exchange(entry.here, 0);
  entry.company = company;
  entry.here += seconds;
}

Posterior::Sum Posterior::sum(std::span<const Worker> workers) const {
  Sum sum;
  sum.together.setZero(mean_.size(), kFeatures);
  for (const Worker& worker : workers) {
    const Entry& entry = entries_[worker.id];
    sum.mean += worker.time * mean_of(entry);
    if (entry.place != kNotTogether) sum.together += worker.time * covariance_.middleCols<kFeatures>(entry.place);
  }
  for (const Worker& worker : workers) {
    const Entry& entry = entries_[worker.id];
    if (entry.place == kNotTogether) {
      sum.spread += square(worker.time) * entry.alone.covariance;
    } else {
      sum.spread += worker.time * sum.together.middleRows<kFeatures>(entry.place);
    }
  }
  return sum;
}

FeatureMatrix Posterior::covariance_with(const Sum& sum, const Worker& worker) const {
  const Entry& entry = entries_[worker.id];
  if (entry.place == kNotTogether) return worker.time * entry.alone.covariance;
  return sum.together.middleRows<kFeatures>(entry.place);
}

double Posterior::power_variance(std::span<const Worker> workers) const {
  double variance = 0;
  std::vector<std::pair<int, double>> places;
  for (const Worker& worker : workers) {
    const Entry& entry = entries_[worker.id];
    if (entry.place == kNotTogether) {
      variance += square(worker.time) * entry.alone.covariance(kPower, kPower);
    } else {
      places.emplace_back(entry.place + kPower, worker.time);
    }
  }
  for (const auto& [row, time] : places) {
    for (const auto& [column, other] : places) variance += time * other * covariance_(row, column);
  }
  return variance;
}

FeatureMatrix Posterior::spread_of_seen(const Sum& sum, const FeatureMatrix& noise) const {
  const FeatureMatrix with_deviation = sum.together.topRows<kFeatures>();
  return noise + sum.spread + with_deviation + with_deviation.transpose() +
         covariance_.topLeftCorner<kFeatures, kFeatures>();
}

double Posterior::log_probability(std::span<const Worker> workers, const Features& seen,
                                  const FeatureMatrix& noise) const {
  const Sum sum = this->sum(workers);
  const Eigen::LLT<FeatureMatrix> root(spread_of_seen(sum, noise));
  double logarithm = -root.matrixL().solve(seen - sum.mean - mean_.head<kFeatures>()).squaredNorm() / 2;
  for (int f = 0; f < kFeatures; ++f) logarithm -= std::log(root.matrixLLT()(f, f));
  return logarithm;
}

// A step of a Kalman filter.
void Posterior::learn(std::span<const Worker> workers, const Features& seen, const FeatureMatrix& noise) {
  choose_those_together(workers);
  const Sum sum = this->sum(workers);
  const Eigen::LLT<FeatureMatrix> root(spread_of_seen(sum, noise));
  const Features pull = root.solve(seen - sum.mean - mean_.head<kFeatures>());
  const Eigen::Matrix<double, Eigen::Dynamic, kFeatures> with_seen = sum.together + covariance_.leftCols<kFeatures>();
  mean_ += with_seen * pull;
  covariance_.noalias() -= with_seen * root.solve(with_seen.transpose());
  for (const Worker& worker : workers) {
    Entry& entry = entries_[worker.id];
    if (entry.place != kNotTogether) continue;
    const FeatureMatrix own = worker.time * entry.alone.covariance;
    entry.alone.mean += own * pull;
    entry.alone.covariance -= own * root.solve(own);
  }
  note_revisions(workers);
}

double Posterior::respect_bounds(std::span<const Worker> workers, double highest) {
  constexpr double kTolerance = 0.01;
  constexpr int kMostPulls = 16;  // in a window, for the cost
  int pulls = 0;
  double log_probability = 0;
  for (const Worker& worker : workers) {
    Entry& entry = entries_[worker.id];
    for (int f = 0; f < kFeatures && pulls < kMostPulls; ++f) {
      const double value = mean_of(entry)[f];
      const double bound = std::clamp(value, 0.0, highest);
      if (std::abs(value - bound) < kTolerance) continue;
      ++pulls;
      // As if the bound had been read, with an error as large as the signature's.
      const auto take = [&](auto& mean, auto& covariance, int row) {
        const Eigen::VectorXd column = covariance.col(row);
        const double variance = 2 * std::max(1e-9, column[row]);
        log_probability -= square(bound - value) / variance / 2;
        mean += column * ((bound - value) / variance);
        covariance -= column * column.transpose() / variance;
      };
      if (entry.place == kNotTogether) {
        take(entry.alone.mean, entry.alone.covariance, f);
      } else {
        take(mean_, covariance_, entry.place + f);
      }
    }
  }
  if (pulls > 0) note_revisions(workers);
  return log_probability;
}

void Posterior::note_revisions(std::span<const Worker> workers) {
  for (const SignatureId id : together_) note_revision(entries_[id]);
  for (const Worker& worker : workers) note_revision(entries_[worker.id]);
}

void Posterior::note_revision(Entry& entry) {
  constexpr double kMaterial = 0.01;  // of full scale
  constexpr double kMaterialVariance = 1.25;
  const Features mean = mean_of(entry);
  const double variance = covariance_of(entry)(kPower, kPower);
  const bool moved = (mean - entry.revised_mean).cwiseAbs().maxCoeff() > kMaterial ||
                     variance > kMaterialVariance * entry.revised_variance ||
                     variance * kMaterialVariance < entry.revised_variance;
  if (!moved) return;
  entry.revised_mean = mean;
  entry.revised_variance = variance;
  entry.revision = ++revisions_;
}

void Posterior::supersede(const Posterior& other) {
  revisions_ = std::max(revisions_, other.revisions_);
  for (Entry& entry : entries_) entry.revision = ++revisions_;
}

}  // namespace gpuledger::attribute
