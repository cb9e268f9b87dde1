// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/bounded_least_squares.h"

#include <Eigen/Core>
#include <algorithm>
#include <cassert>

// Least squares with bounds, few measurements and many variables. The dual problem is solved: each measurement has a
// multiplier, and each variable takes its optimal value for these multipliers. At the optimum the residual of each
// measurement is variance * multiplier. The dual is concave and piecewise quadratic, so Newton's method with line
// search converges after few rounds, each linear in the variables. (Coordinate descent takes thousands of rounds if
// two variables have the same effects.)
namespace gpuledger::attribute {
namespace {

constexpr int kMostRounds = 50;
constexpr double kConverged = 1e-9;

// Variance of a measurement. The multiplier is positive if the sum is above the measured value.
double variance_of(const Measurement& measurement, double multiplier) {
  const double error = multiplier > 0 ? measurement.error_above : measurement.error_below;
  return error * error;
}

// square += scale * effect * effect'
void add_square(double scale, const Multipliers& effect, Square& square) {
  using Row = Eigen::Matrix<double, kMostMeasurements, 1>;
  const Row row = Eigen::Map<const Row>(effect.data());
  for (size_t a = 0; a < kMostMeasurements; ++a) Eigen::Map<Row>(square[a].data()) += scale * effect[a] * row;
}

struct Dual {
  std::span<const Measurement> measurements;
  std::span<const Variable> variables;
  const Square& noise;
  const Square& effects;
  std::vector<double>& values;  // optimal for the last multipliers
  Multipliers sum{};            // of the values' effects

  double value(const Multipliers& at) {
    double total = 0;
    sum = {};
    for (size_t i = 0; i < variables.size(); ++i) {
      const Variable& variable = variables[i];
      double even = 0, odd = 0;  // two sums, so that one addition need not wait for the other
      for (size_t c = 0; c < kMostMeasurements; c += 2) {
        even += variable.effect[c] * at[c];
        odd += variable.effect[c + 1] * at[c + 1];
      }
      const double slope = even + odd;
      const double variance = variable.prior_error * variable.prior_error;
      const double best = variable.prior_mean - slope * variance;
      values[i] = std::clamp(best, 0.0, variable.highest);
      const double off = values[i] - variable.prior_mean;
      // Within the bounds both slopes are equal, which saves a division.
      total += (values[i] == best ? -slope * off / 2 : off * off / (2 * variance)) + slope * values[i];
      for (size_t c = 0; c < kMostMeasurements; ++c) sum[c] += variable.effect[c] * values[i];
    }
    const Multipliers pays = paid_for(at);
    for (size_t c = 0; c < measurements.size(); ++c) total -= at[c] * (pays[c] / 2 + measurements[c].seen);
    return total;
  }

  // The residuals for these multipliers.
  Multipliers paid_for(const Multipliers& at) const {
    Multipliers errors{};
    for (size_t c = 0; c < measurements.size(); ++c) {
      errors[c] = variance_of(measurements[c], at[c]) * at[c];
      for (size_t other = 0; other < measurements.size(); ++other) errors[c] += noise[c][other] * at[other];
    }
    return errors;
  }

  Multipliers gradient(const Multipliers& at) const {
    Multipliers gradient{};
    const Multipliers pays = paid_for(at);
    for (size_t c = 0; c < measurements.size(); ++c) gradient[c] = sum[c] - measurements[c].seen - pays[c];
    return gradient;
  }

  // The negative Hessian: the effects of all variables except the few that are at a bound.
  Square curvature(const Multipliers& at) const {
    Square square = effects;
    for (size_t i = 0; i < variables.size(); ++i) {
      if (values[i] > 0 && values[i] < variables[i].highest) continue;
      add_square(-variables[i].prior_error * variables[i].prior_error, variables[i].effect, square);
    }
    for (size_t c = 0; c < measurements.size(); ++c) {
      for (size_t other = 0; other < measurements.size(); ++other) square[c][other] += noise[c][other];
      square[c][c] += variance_of(measurements[c], at[c]);
    }
    return square;
  }
};

// Solves square * x = right by elimination. `square` is positive definite.
Multipliers solve(Square square, Multipliers right, size_t size) {
  for (size_t k = 0; k < size; ++k) {
    const double pivot = 1 / square[k][k];
    for (size_t row = k + 1; row < size; ++row) {
      const double factor = square[row][k] * pivot;
      for (size_t c = k; c < size; ++c) square[row][c] -= factor * square[k][c];
      right[row] -= factor * right[k];
    }
  }
  for (size_t k = size; k-- > 0;) {
    for (size_t c = k + 1; c < size; ++c) right[k] -= square[k][c] * right[c];
    right[k] /= square[k][k];
  }
  return right;
}

}  // namespace

void add_effects(std::span<const Variable> variables, Square& sum) {
  for (const Variable& variable : variables)
    add_square(variable.prior_error * variable.prior_error, variable.effect, sum);
}

void bounded_least_squares(std::span<const Measurement> measurements, std::span<const Variable> variables,
                           std::vector<double>& values) {
  DualStart start;
  add_effects(variables, start.effects);
  bounded_least_squares(measurements, variables, start, values);
}

void bounded_least_squares(std::span<const Measurement> measurements, std::span<const Variable> variables,
                           DualStart& start, std::vector<double>& values) {
  assert(measurements.size() <= kMostMeasurements);
  values.resize(variables.size());
  Dual dual{measurements, variables, start.noise, start.effects, values, {}};
  Multipliers& at = start.multipliers;
  double value = dual.value(at);
  for (int round = 0; round < kMostRounds; ++round) {
    const Multipliers gradient = dual.gradient(at);
    const Multipliers step = solve(dual.curvature(at), gradient, measurements.size());
    double rise = 0;
    for (size_t c = 0; c < measurements.size(); ++c) rise += gradient[c] * step[c];
    if (rise < kConverged) break;
    constexpr double kShortest = 1e-4;
    constexpr double kEnoughOfRise = 1e-4;
    for (double length = 1; length > kShortest; length /= 2) {
      Multipliers next = at;
      for (size_t c = 0; c < measurements.size(); ++c) next[c] += length * step[c];
      const double reached = dual.value(next);
      if (reached < value + kEnoughOfRise * length * rise && length / 2 > kShortest) continue;
      at = next;
      value = reached;
      break;
    }
  }
}

}  // namespace gpuledger::attribute
