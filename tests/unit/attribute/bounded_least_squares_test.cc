// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/bounded_least_squares.h"

#include <gtest/gtest.h>

namespace gpuledger::attribute {
namespace {

constexpr double kLoose = 1;  // a prior that gives way to any measurement

std::vector<double> solve(const std::vector<Measurement>& measurements, const std::vector<Variable>& variables) {
  std::vector<double> values;
  bounded_least_squares(measurements, variables, values);
  return values;
}

TEST(BoundedLeastSquares, FindsWhatTheMeasurementsSay) {
  const auto values =
      solve({{0.8 * 0.3 + 0.1 * 0.6, 0.01, 0.01}, {0.9 * 0.6, 0.01, 0.01}, {0.45, 0.01, 0.01}},
            {{.effect = {0.8, 0.0, 0.5}, .prior_error = kLoose}, {.effect = {0.1, 0.9, 0.5}, .prior_error = kLoose}});
  EXPECT_NEAR(values[0], 0.3, 1e-3);
  EXPECT_NEAR(values[1], 0.6, 1e-3);
}

TEST(BoundedLeastSquares, TellsEqualVariablesApartByTheirPriors) {
  const auto values = solve({{0.8, 0.01, 0.01}}, {{.effect = {1}, .prior_mean = 0.2, .prior_error = 0.1},
                                                  {.effect = {1}, .prior_mean = 0.6, .prior_error = 0.1}});
  EXPECT_NEAR(values[0], 0.2, 1e-3);
  EXPECT_NEAR(values[1], 0.6, 1e-3);
}

TEST(BoundedLeastSquares, KeepsToTheBounds) {
  const auto values = solve({{2.0, 0.1, 0.1}, {-1.0, 0.1, 0.1}},
                            {{.effect = {1, 0}, .prior_error = kLoose}, {.effect = {0, 1}, .prior_error = kLoose}});
  EXPECT_DOUBLE_EQ(values[0], 1);
  EXPECT_DOUBLE_EQ(values[1], 0);
}

TEST(BoundedLeastSquares, OneSidedMeasurementsCountOnOneSideOnly) {
  const Variable variable{.effect = {1}, .prior_mean = 0.5, .prior_error = 0.1};
  EXPECT_NEAR(solve({{0.3, kNoMatter, 0.001}}, {variable})[0], 0.5, 1e-3) << "more than this may be";
  EXPECT_NEAR(solve({{0.8, kNoMatter, 0.001}}, {variable})[0], 0.8, 1e-3) << "less may not";
}

TEST(BoundedLeastSquares, ACrowdOfEqualsSharesAlike) {
  const std::vector<Variable> crowd(500, Variable{.effect = {0.5, 1}, .prior_mean = 0.01, .prior_error = 0.01});
  const auto values = solve({{0.5, 0.01, 0.01}, {1.0, 0.01, 0.01}}, crowd);
  for (double value : values) EXPECT_NEAR(value, 1.0 / 500, 1e-4);
}

}  // namespace
}  // namespace gpuledger::attribute
