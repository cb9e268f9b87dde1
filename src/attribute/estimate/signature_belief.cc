// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/signature_belief.h"

#include <Eigen/Cholesky>
#include <cmath>

namespace gpuledger::attribute {

// Gauss-Jordan in place, without pivots: the matrices are positive definite. It computes only the half on and below the
// diagonal, with loop lengths known to the compiler; Eigen's general solver takes ten times as long for a matrix of
// this size.
FeatureMatrix inverse_of(const FeatureMatrix& matrix) {
  FeatureMatrix inverse = matrix;
#pragma GCC unroll 7
  for (int k = 0; k < kFeatures; ++k) {
    const double pivot = 1 / inverse(k, k);
    double column[kFeatures];
#pragma GCC unroll 7
    for (int row = 0; row < kFeatures; ++row) column[row] = row < k ? inverse(k, row) : inverse(row, k);
#pragma GCC unroll 7
    for (int c = 0; c < kFeatures; ++c) {
      if (c == k) continue;
      const double factor = column[c] * pivot;
#pragma GCC unroll 7
      for (int row = c; row < kFeatures; ++row) {
        if (row != k) inverse(row, c) -= factor * column[row];
      }
      (c < k ? inverse(k, c) : inverse(c, k)) = factor;
    }
    inverse(k, k) = -pivot;
  }
  // The sweeps leave the inverse with the opposite sign.
  for (int c = 0; c < kFeatures; ++c) {
    for (int row = c; row < kFeatures; ++row) inverse(row, c) = inverse(c, row) = -inverse(row, c);
  }
  return inverse;
}

Message::Message(const FeatureMatrix& precision, const Features& shift) : packed_(std::make_unique<Packed>()) {
  float* next = packed_->data();
  for (int row = 0; row < kFeatures; ++row) {
    for (int column = 0; column <= row; ++column) *next++ = static_cast<float>(precision(row, column));
  }
  for (int f = 0; f < kFeatures; ++f) *next++ = static_cast<float>(shift[f]);
}

FeatureMatrix Message::precision() const {
  if (empty()) return FeatureMatrix::Zero();
  FeatureMatrix result;
  const float* next = packed_->data();
  for (int row = 0; row < kFeatures; ++row) {
    for (int column = 0; column <= row; ++column) result(row, column) = result(column, row) = *next++;
  }
  return result;
}

Features Message::shift() const {
  if (empty()) return Features::Zero();
  Features result;
  for (int f = 0; f < kFeatures; ++f) result[f] = (*packed_)[static_cast<size_t>(kPacked) + static_cast<size_t>(f)];
  return result;
}

SignatureBelief::SignatureBelief(const SignaturePrior& prior, const Memory& memory) : SignatureBelief(prior) {
  FeatureMatrix precision;
  size_t next = 0;
  for (int row = 0; row < kFeatures; ++row) {
    for (int column = 0; column <= row; ++column)
      precision(row, column) = precision(column, row) = memory.precision[next++];
  }
  if (!precision.allFinite() || precision.llt().info() != Eigen::Success) return;  // not valid: learned again
  precision_ = precision;
  for (int f = 0; f < kFeatures; ++f) shift_[f] = memory.shift[static_cast<size_t>(f)];
  share = memory.share;
}

SignatureBelief::Memory SignatureBelief::memory() const {
  Memory memory;
  size_t next = 0;
  for (int row = 0; row < kFeatures; ++row) {
    for (int column = 0; column <= row; ++column) memory.precision[next++] = precision_(row, column);
  }
  for (int f = 0; f < kFeatures; ++f) memory.shift[static_cast<size_t>(f)] = shift_[f];
  memory.share = share;
  return memory;
}

void SignatureBelief::replace(const Message& old, const Message& now, bool shared) {
  const FeatureMatrix more_precision = now.precision() - old.precision();
  const Features more_shift = now.shift() - old.shift();
  precision_ += more_precision;
  shift_ += more_shift;
  if (shared) {
    shared_precision_ += more_precision;
    shared_shift_ += more_shift;
    shared_windows_ += (now.empty() ? 0 : 1) - (old.empty() ? 0 : 1);
  } else {
    by_itself_valid_ = false;
  }
  moments_valid_ = false;
  ++version_;
}

void SignatureBelief::freeze(const Message& message, bool shared) {
  const double kept = shared && shared_windows_ > 1 ? 1 / shared_windows_ : 1;
  replace(message, Message(), shared);
  precision_ += kept * message.precision();
  shift_ += kept * message.shift();
  by_itself_valid_ = false;
}

const Moments& SignatureBelief::moments() const {
  if (!moments_valid_) moments_ = moments_of(precision_, shift_);
  moments_valid_ = true;
  return moments_;
}

Moments moments_of(const FeatureMatrix& precision, const Features& shift) {
  Moments moments;
  moments.covariance = inverse_of(precision);
  moments.mean = (moments.covariance * shift).cwiseMax(0.0);
  return moments;
}

void SignatureBelief::note_revision() {
  constexpr double kMaterial = 0.01;  // of full scale
  constexpr double kMaterialVariance = 1.25;
  const Moments& now = moments();
  const double variance = now.covariance(kPower, kPower);
  const bool moved = (now.mean - revised_mean_).cwiseAbs().maxCoeff() > kMaterial ||
                     variance > kMaterialVariance * revised_variance_ ||
                     variance * kMaterialVariance < revised_variance_;
  if (!moved) return;
  revised_mean_ = now.mean;
  revised_variance_ = variance;
  ++revision_;
}

const Moments& SignatureBelief::moments_by_itself() const {
  if (!by_itself_valid_) by_itself_ = moments_of(precision_ - shared_precision_, shift_ - shared_shift_);
  by_itself_valid_ = true;
  return by_itself_;
}

SignaturePrior kin_prior(const SignatureBelief& known, const Constants& constants) {
  Moments moments = known.moments();
  const Features spread = (constants.kin_spread * moments.mean.array() + constants.reading_error).square();
  moments.covariance.diagonal() += spread;
  SignaturePrior prior;
  prior.precision = inverse_of(moments.covariance);
  prior.shift = prior.precision * moments.mean;
  return prior;
}

}  // namespace gpuledger::attribute
