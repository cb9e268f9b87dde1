// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>

#include "attribute/estimate/constants.h"
#include "attribute/estimate/features.h"

namespace gpuledger::attribute {

// The assumed signature of a new process.
struct SignaturePrior {
  FeatureMatrix precision;
  Features shift;  // precision * mean
};

// model: the GPU's name. The watts per activity were measured for Hopper; other GPUs use a rough table.
SignaturePrior signature_prior(const Constants& constants, const std::string& model);

// The contribution of one window to a signature: a normal distribution in information form, small because there are
// thousands. With many processes most messages are empty.
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
  std::unique_ptr<Packed> packed_;                        // null: empty
};

// Mean and covariance of a normal distribution in information form. Signatures are not negative.
struct Moments {
  Features mean;
  FeatureMatrix covariance;
};
Moments moments_of(const FeatureMatrix& precision, const Features& shift);

// The estimate of a process's signature: the prior and the messages of all windows, in information form, so that each
// message can be removed again.
class SignatureBelief {
 public:
  using Memory = SignatureMemory;

  explicit SignatureBelief(const SignaturePrior& prior) : precision_(prior.precision), shift_(prior.shift) {}
  SignatureBelief(const SignaturePrior& prior, const Memory& memory);
  Memory memory() const;

  // shared: other processes worked in the window too. Errors of such windows are correlated.
  void replace(const Message& old, const Message& now, bool shared);
  // The window is dropped and its message stays. All dropped windows with other processes count as one.
  void freeze(const Message& message, bool shared);

  const FeatureMatrix& precision() const { return precision_; }
  const Features& shift() const { return shift_; }
  const Moments& moments() const;
  // Counts all changes.
  uint64_t version() const { return version_; }
  // Counts the changes so large that windows are estimated again.
  uint64_t revision() const { return revision_; }
  void note_revision();
  // From windows in which the process was alone. In shared windows two unknown signatures make each
  // other look certain.
  const Moments& moments_by_itself() const;

  // Its last share of the GPU's time; below 0 before the first window.
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

// The prior of a new process of a known kind.
SignaturePrior kin_prior(const SignatureBelief& known, const Constants& constants);

// The inverse of a symmetric positive definite matrix.
FeatureMatrix inverse_of(const FeatureMatrix& matrix);

}  // namespace gpuledger::attribute
