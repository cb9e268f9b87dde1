// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

#include "attribute/estimate/signature_memory.h"

namespace gpuledger::attribute {

inline constexpr int kPower = 0;
using Features = Eigen::Matrix<double, kFeatures, 1>;
using FeatureMatrix = Eigen::Matrix<double, kFeatures, kFeatures>;

// What is known of a signature: a normal distribution.
struct Belief {
  Features mean = Features::Zero();
  FeatureMatrix covariance = FeatureMatrix::Identity();
};

inline double square(double x) {
  return x * x;
}

}  // namespace gpuledger::attribute
