// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "attribute/estimate/features.h"

namespace gpuledger::attribute {

using SignatureId = uint32_t;

// All signatures of a GPU as one normal distribution, with their covariances: what windows say about several together
// is kept together. Also the deviation: by how much the readings differ from the sum of the signatures for some
// seconds. The covariances of only so many signatures are kept, those with the most GPU time; any other is on its
// own.
class Posterior {
 public:
  struct Worker {
    SignatureId id = 0;
    double time = 0;  // of the window
  };

  // Sum of times x signatures.
  struct Sum {
    Features mean = Features::Zero();
    FeatureMatrix spread = FeatureMatrix::Zero();
    Eigen::Matrix<double, Eigen::Dynamic, kFeatures> together;  // covariance of all that are together with the sum
  };

  explicit Posterior(size_t most_together) : most_together_(most_together) {}

  SignatureId add(const Belief& prior);
  void keep_only(const std::set<SignatureId>& used);

  Features mean(SignatureId id) const;
  FeatureMatrix covariance(SignatureId id) const { return covariance(id, id); }
  void add_covariance(SignatureId id, double factor, FeatureMatrix& sum) const;
  FeatureMatrix covariance(SignatureId a, SignatureId b) const;
  Sum sum(std::span<const Worker> workers) const;
  double power_variance(std::span<const Worker> workers) const;  // of their sum
  // Covariance of a signature with a sum in which it has that time.
  FeatureMatrix covariance_with(const Sum& sum, const Worker& worker) const;
  // Seconds in which it was learned in other companies than the present one.
  double seconds_elsewhere(SignatureId id) const { return entries_[id].elsewhere; }
  double seconds_learned(SignatureId id) const { return entries_[id].here + entries_[id].elsewhere; }
  // Counts the changes so large that windows are divided again.
  uint64_t revision(SignatureId id) const { return entries_[id].revision; }

  // The deviation keeps this part of itself; what it may have become since is `spread`.
  void let_deviation_fade(double kept, const FeatureMatrix& spread);
  void widen(SignatureId id, const FeatureMatrix& by);
  void note_company(SignatureId id, const void* company, double seconds);
  // How likely a window is: seen = deviation + sum of times x signatures, +- noise. The logarithm, without the constant
  // part.
  double log_probability(std::span<const Worker> workers, const Features& seen, const FeatureMatrix& noise) const;
  void learn(std::span<const Worker> workers, const Features& seen, const FeatureMatrix& noise);
  // Signatures are between 0 and `highest`: those outside are pulled half the way back. How likely that they are
  // inside was.
  double respect_bounds(std::span<const Worker> workers, double highest);
  // It takes the place of another one: all windows are divided again.
  void supersede(const Posterior& other);

 private:
  static constexpr int kNotTogether = -1;

  struct Entry {
    bool used = false;
    int place = kNotTogether;  // first row in the covariance of those together
    Belief alone;              // if it is not together with others
    double weight = 0;         // its share of the GPU's time lately
    const void* company = nullptr;
    double here = 0;  // seconds in this company
    double elsewhere = 0;
    uint64_t revision = 0;
    Features revised_mean = Features::Zero();
    double revised_variance = 0;
  };

  FeatureMatrix spread_of_seen(const Sum& sum, const FeatureMatrix& noise) const;
  void put_together(SignatureId id, Entry& entry);
  void take_apart(Entry& entry);
  void choose_those_together(std::span<const Worker> workers);
  void note_revision(Entry& entry);
  void note_revisions(std::span<const Worker> workers);
  Features mean_of(const Entry& entry) const;
  FeatureMatrix covariance_of(const Entry& entry) const;

  size_t most_together_;
  std::vector<Entry> entries_;                               // by id; an unused one is used again
  std::vector<SignatureId> together_;                        // in the order of their places
  Eigen::VectorXd mean_ = Eigen::VectorXd::Zero(kFeatures);  // the deviation's first
  Eigen::MatrixXd covariance_ = Eigen::MatrixXd::Zero(kFeatures, kFeatures);
  uint64_t revisions_ = 0;
};

}  // namespace gpuledger::attribute
