// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "attribute/estimate/features.h"

namespace gpuledger::attribute {

// The inverse of the lower Cholesky root of a positive definite matrix. The length of (inverse * x) is the
// Mahalanobis distance of x. One product with a small fixed matrix is faster than one triangular solve per process.
inline JointMatrix inverse_root_of(const JointMatrix& matrix) {
  constexpr int kSize = kFeatures + 1;
  JointMatrix root = matrix;
  JointMatrix inverse = JointMatrix::Identity();
  // Elimination turns the matrix into its root times a diagonal; the same steps turn the identity into the inverse.
  for (int k = 0; k < kSize; ++k) {
    const double scale = 1 / root(k, k);
    for (int row = k + 1; row < kSize; ++row) {
      const double factor = root(row, k) * scale;
      for (int column = k + 1; column <= row; ++column) root(row, column) -= factor * root(column, k);
      for (int column = 0; column <= k; ++column) inverse(row, column) -= factor * inverse(k, column);
    }
  }
  for (int k = 0; k < kSize; ++k) inverse.row(k) *= 1 / std::sqrt(root(k, k));
  return inverse;
}

// With one more feature that is independent of the others.
inline JointMatrix joint_of(const FeatureMatrix& matrix, double last) {
  JointMatrix joint = JointMatrix::Zero();
  joint.topLeftCorner<kFeatures, kFeatures>() = matrix;
  joint(kFeatures, kFeatures) = last;
  return joint;
}

inline Joint joint_of(const Features& features, double last) {
  Joint joint;
  joint << features, last;
  return joint;
}

}  // namespace gpuledger::attribute
