// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

namespace gpuledger::attribute {

// Most measurements of one problem. Loops over measurements have this fixed length.
inline constexpr size_t kMostMeasurements = 8;

// `seen` is the measured sum of value * effect over the variables. The errors above and below it may differ. A side
// with error kNoMatter is not used.
inline constexpr double kNoMatter = 1e3;

struct Measurement {
  double seen = 0;
  double error_above = 1;
  double error_below = 1;
};

struct Variable {
  std::array<double, kMostMeasurements> effect{};  // of a value of 1 on each measurement
  double prior_mean = 0;
  double prior_error = 1;  // above 0
  double highest = 1;      // the value is between 0 and this
};

using Multipliers = std::array<double, kMostMeasurements>;
using Square = std::array<Multipliers, kMostMeasurements>;

// Sums and start values that can be reused when almost the same problem is solved again.
struct DualStart {
  Square noise{};             // covariance of correlated errors of measurements; added to their own
  Square effects{};           // sum over variables of prior_error^2 * effect * effect'
  Multipliers multipliers{};  // in: the start; out: the solution
};
void add_effects(std::span<const Variable> variables, Square& sum);

// Minimizes the sum of the squares of all errors, including those of the priors. At most kMostMeasurements
// measurements; time and memory are linear in the variables. `values` is resized.
void bounded_least_squares(std::span<const Measurement> measurements, std::span<const Variable> variables,
                           std::vector<double>& values);
void bounded_least_squares(std::span<const Measurement> measurements, std::span<const Variable> variables,
                           DualStart& start, std::vector<double>& values);

}  // namespace gpuledger::attribute
