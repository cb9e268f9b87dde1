// SPDX-License-Identifier: Apache-2.0
#include <Eigen/LU>
#include <string>

#include "attribute/estimate/signatures.h"

namespace gpuledger::attribute {
namespace {

// Power, then the order of Activity::Part: SM, occupancy, tensor, DRAM, FP32, FP64. Means and spreads over the
// recordings of single processes.
constexpr double kMean[kFeatures] = {0.45, 0.60, 0.25, 0.20, 0.35, 0.12, 0.03};
constexpr double kSpread[kFeatures] = {0.35, 0.35, 0.20, 0.30, 0.30, 0.25, 0.15};

// Watts above the resident ones / power limit: per busy second, then per unit of each activity.
struct WattsFromActivity {
  double busy;
  double parts[Activity::kParts];
};
// Regression over recordings of an H200 (700 W).
constexpr WattsFromActivity kHopper = {0.037, {0.186, -0.081, 0.704, 0.600, 0.680, 0.0}};
// Parts nearly equal: on recordings of an H200 0.2 points worse than the table above.
constexpr WattsFromActivity kUnmeasured = {0.05, {0.2, 0.0, 0.4, 0.4, 0.4, 0.4}};

const WattsFromActivity& table_of(const std::string& model) {
  for (const char* name : {"H100", "H200", "H800", "H20", "GH200"}) {
    if (model.find(name) != model.npos) return kHopper;
  }
  return kUnmeasured;
}

}  // namespace

Belief signature_prior(const Constants& constants, const std::string& model) {
  const WattsFromActivity& table = table_of(model);
  FeatureMatrix precision = FeatureMatrix::Zero();
  Features shift = Features::Zero();
  // power - sum(parts * activity) is about `busy`.
  Features tie;
  tie[kPower] = 1;
  for (int part = 0; part + 1 < kFeatures; ++part) tie[1 + part] = -table.parts[part];
  for (int f = 0; f < kFeatures; ++f) {
    const double weight = 1 / square(constants.prior_spread * kSpread[f]);
    precision(f, f) += weight;
    shift[f] += weight * kMean[f];
  }
  const double weight = 1 / square(constants.watts_from_activity_error);
  precision += weight * tie * tie.transpose();
  shift += weight * table.busy * tie;
  const FeatureMatrix covariance = precision.inverse();
  return {covariance * shift, covariance};
}

}  // namespace gpuledger::attribute
