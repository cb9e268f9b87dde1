#pragma once

#include <Eigen/Core>

#include "model/sample.h"

namespace gpuledger::attribute {

// What a GPU shows in a window of time, as numbers of about one: power above the static watts over the power limit,
// then the activity of its parts in the order of Activity::Part.
inline constexpr int kFeatures = 1 + static_cast<int>(Activity::kParts);
inline constexpr int kPower = 0;
using Features = Eigen::Matrix<double, kFeatures, 1>;
using FeatureMatrix = Eigen::Matrix<double, kFeatures, kFeatures>;

// The same with the sum of all busy times as one more. Eight numbers fill vector registers, seven do not.
using Joint = Eigen::Matrix<double, kFeatures + 1, 1>;
using JointMatrix = Eigen::Matrix<double, kFeatures + 1, kFeatures + 1>;

}  // namespace gpuledger::attribute
