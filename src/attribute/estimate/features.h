// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

#include "attribute/estimate/signature_memory.h"

namespace gpuledger::attribute {

inline constexpr int kPower = 0;
using Features = Eigen::Matrix<double, kFeatures, 1>;
using FeatureMatrix = Eigen::Matrix<double, kFeatures, kFeatures>;

// The features and the sum of all busy times. Eight numbers fill vector registers, seven do not.
using Joint = Eigen::Matrix<double, kFeatures + 1, 1>;
using JointMatrix = Eigen::Matrix<double, kFeatures + 1, kFeatures + 1>;

inline double square(double x) {
  return x * x;
}

}  // namespace gpuledger::attribute
