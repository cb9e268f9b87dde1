// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "app/bill/statement.h"

namespace gpuledger::app {

// How many decimals a bill shows to people: a small one more, so that it shows more than zeros.
struct BillDigits {
  bool small = false;  // less than 1 kWh
  int kwh = 3;         // watt-hours, or thousandths of them
  int hours = 2;
  int64_t unit = 3'600'000;  // the last digit of a kWh, in millijoules
};
BillDigits digits_of(const Statement& statement);

// A column in units of its last digit. Readers add it up, so its cells add up to its total.
struct RoundedColumn {
  std::vector<int64_t> cells;
  int64_t total = 0;
};

// Rows add up too: alone + shared = together, together + part = charged. The totals of together and charged are the
// meter.
struct RoundedEnergy {
  RoundedColumn alone, shared, together, part, charged;
};
RoundedEnergy round_energy(const Statement& statement);

// Money, weight or millions of tokens, with up to six decimals. The total is that of the exact amounts.
RoundedColumn round_amounts(const Statement& statement, int digits,
                            const std::function<double(const BillLine&)>& value);

// The total is that of the rounded hours; empty if no line has any.
std::optional<double> sum_of_hours(const Statement& statement, std::optional<double> BillLine::*hours, int digits);

}  // namespace gpuledger::app
