// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>

#include "attribute/estimate/constants.h"
#include "attribute/estimate/features.h"

namespace gpuledger::attribute {

// What is assumed of a process that nobody has seen yet.
struct SignaturePrior {
  FeatureMatrix precision;
  Features shift;  // precision * mean
};

// model: the GPU's name. What activity costs in watts is measured for Hopper; for others a rough table serves.
SignaturePrior signature_prior(const Constants& constants, const std::string& model);

// What one window says of a signature: a normal distribution in information form, kept small because there are
// thousands. In a crowd most windows say nothing of most processes.
class Message {
 public:
  static constexpr int kPacked = kFeatures * (kFeatures + 1) / 2;

  Message() = default;
  Message(const FeatureMatrix& precision, const Features& shift);

  FeatureMatrix precision() const;
  Features shift() const;
  bool empty() const { return packed_ == nullptr; }

 private:
  using Packed = std::array<float, kPacked + kFeatures>;  // lower triangle, then the shift
  std::unique_ptr<Packed> packed_;                        // null: nothing
};

// Mean and covariance of a normal distribution in information form. Signatures are not negative.
struct Moments {
  Features mean;
  FeatureMatrix covariance;
};
Moments moments_of(const FeatureMatrix& precision, const Features& shift);

// What is known of a process's signature: the prior and all that windows say, in information form, so that what one
// window said can be taken out again.
class SignatureBelief {
 public:
  using Memory = SignatureMemory;

  explicit SignatureBelief(const SignaturePrior& prior) : precision_(prior.precision), shift_(prior.shift) {}
  SignatureBelief(const SignaturePrior& prior, const Memory& memory);
  Memory memory() const;

  // shared: said by windows in which others worked too. Such windows have their errors in common.
  void replace(const Message& old, const Message& now, bool shared);
  // The window is no longer kept: what it said stays. Windows that others shared count as one from then on.
  void freeze(const Message& message, bool shared);

  const FeatureMatrix& precision() const { return precision_; }
  const Features& shift() const { return shift_; }
  const Moments& moments() const;
  // Counts all changes.
  uint64_t version() const { return version_; }
  // Counts how often what is known has moved so far that windows are worth another look.
  uint64_t revision() const { return revision_; }
  void note_revision();
  // By what it showed while it was alone. Side by side, two that are not known make each other's
  // signatures look certain.
  const Moments& moments_by_itself() const;

  // The share of the GPU's time it had last; below 0 before the first window.
  double share = -1;

 private:
  FeatureMatrix precision_;
  Features shift_;
  FeatureMatrix shared_precision_ = FeatureMatrix::Zero();  // of precision_
  Features shared_shift_ = Features::Zero();
  double shared_windows_ = 0;
  uint64_t version_ = 0;
  uint64_t revision_ = 1;
  Features revised_mean_ = Features::Zero();
  double revised_variance_ = 0;
  mutable Moments moments_;
  mutable bool moments_valid_ = false;
  mutable Moments by_itself_;
  mutable bool by_itself_valid_ = false;
};

// What a new process is assumed to be when one of its kind is known.
SignaturePrior kin_prior(const SignatureBelief& known, const Constants& constants);

// The inverse of a symmetric positive definite matrix.
FeatureMatrix inverse_of(const FeatureMatrix& matrix);

}  // namespace gpuledger::attribute
