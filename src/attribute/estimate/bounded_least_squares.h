// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

namespace gpuledger::attribute {

// So many measurements one problem can have; room for the loops over them to have a fixed length.
inline constexpr size_t kMostMeasurements = 8;

// The sum over variables of value * effect was seen to be `seen`. Too much and too little may count differently; an
// error of kNoMatter means that this side does not count.
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

// What a caller who solves almost the same problem again need not have summed up or found again.
struct DualStart {
  Square noise{};             // covariance of errors that measurements have in common; added to their own
  Square effects{};           // sum over variables of prior_error^2 * effect * effect'
  Multipliers multipliers{};  // where to begin; the solution's afterwards
};
void add_effects(std::span<const Variable> variables, Square& sum);

// The values for which the sum of the squares of all errors, priors included, is least. At most kMostMeasurements
// measurements; time and memory are linear in the variables. `values` is resized.
void bounded_least_squares(std::span<const Measurement> measurements, std::span<const Variable> variables,
                           std::vector<double>& values);
void bounded_least_squares(std::span<const Measurement> measurements, std::span<const Variable> variables,
                           DualStart& start, std::vector<double>& values);

}  // namespace gpuledger::attribute
