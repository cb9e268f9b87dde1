#include "attribute/estimate/bounded_least_squares.h"

#include <algorithm>
#include <cassert>

// Least squares with bounds, few measurements and many variables. The dual problem is solved: each measurement has a
// multiplier, each variable takes the value that is best for it at these multipliers, and they are right when the sum
// over variables leaves each measurement's error at what its multiplier pays for. The dual is concave and piecewise
// quadratic, so Newton's method with a shorter step where it overshoots ends after few rounds, each linear in the
// variables. (Moving one variable at a time takes thousands of rounds where two of them have the same effects.)
namespace gpuledger::attribute {
namespace {

constexpr int kMostRounds = 50;
constexpr double kConverged = 1e-9;

using Multipliers = std::array<double, kMostMeasurements>;
using Square = std::array<Multipliers, kMostMeasurements>;

// Squared error of a measurement by the side that the sum is on: a positive multiplier is that of too much.
double variance_of(const Measurement& measurement, double multiplier) {
  const double error = multiplier > 0 ? measurement.error_above : measurement.error_below;
  return error * error;
}

struct Dual {
  std::span<const Measurement> measurements;
  std::span<const Variable> variables;
  std::vector<double>& values;  // best at the multipliers last asked for
  Multipliers sum{};            // of the values' effects

  double value(const Multipliers& at) {
    double total = 0;
    sum = {};
    for (size_t i = 0; i < variables.size(); ++i) {
      const Variable& variable = variables[i];
      double slope = 0;
      for (size_t c = 0; c < kMostMeasurements; ++c) slope += variable.effect[c] * at[c];
      const double variance = variable.prior_error * variable.prior_error;
      values[i] = std::clamp(variable.prior_mean - slope * variance, 0.0, variable.highest);
      const double off = values[i] - variable.prior_mean;
      total += off * off / (2 * variance) + slope * values[i];
      for (size_t c = 0; c < kMostMeasurements; ++c) sum[c] += variable.effect[c] * values[i];
    }
    for (size_t c = 0; c < measurements.size(); ++c) {
      total -= at[c] * (variance_of(measurements[c], at[c]) / 2 * at[c] + measurements[c].seen);
    }
    return total;
  }

  Multipliers gradient(const Multipliers& at) const {
    Multipliers gradient{};
    for (size_t c = 0; c < measurements.size(); ++c) {
      gradient[c] = sum[c] - measurements[c].seen - variance_of(measurements[c], at[c]) * at[c];
    }
    return gradient;
  }

  // The negative Hessian.
  Square curvature(const Multipliers& at) const {
    Square square{};
    for (size_t i = 0; i < variables.size(); ++i) {
      if (values[i] <= 0 || values[i] >= variables[i].highest) continue;
      const Multipliers& effect = variables[i].effect;
      const double variance = variables[i].prior_error * variables[i].prior_error;
      for (size_t a = 0; a < measurements.size(); ++a) {
        const double scaled = effect[a] * variance;
        for (size_t b = 0; b < kMostMeasurements; ++b) square[a][b] += scaled * effect[b];
      }
    }
    for (size_t c = 0; c < measurements.size(); ++c) square[c][c] += variance_of(measurements[c], at[c]);
    return square;
  }
};

// square * x = right, for a square that is positive definite, by elimination.
Multipliers solve(Square square, Multipliers right, size_t size) {
  for (size_t k = 0; k < size; ++k) {
    for (size_t row = k + 1; row < size; ++row) {
      const double factor = square[row][k] / square[k][k];
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

void bounded_least_squares(std::span<const Measurement> measurements, std::span<const Variable> variables,
                           std::vector<double>& values) {
  assert(measurements.size() <= kMostMeasurements);
  values.resize(variables.size());
  Dual dual{measurements, variables, values, {}};
  Multipliers at{};
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
