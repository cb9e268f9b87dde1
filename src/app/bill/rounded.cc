// SPDX-License-Identifier: Apache-2.0
#include "app/bill/rounded.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/bill/amounts.h"
#include "app/bill/sharing.h"

namespace gpuledger::app {
namespace {

int64_t in_units(Wide amount, int64_t unit) {
  return static_cast<int64_t>((amount + (amount < 0 ? -unit / 2 : unit / 2)) / unit);
}

// To the total, unless the parts are not those of the meter: then the bill says that it is not complete.
RoundedColumn round_column(const std::vector<Wide>& parts, int64_t unit, int64_t total, bool adds_up) {
  RoundedColumn column{{}, total};
  if (adds_up) {
    column.cells = round_parts(parts, unit, total);
  } else {
    for (const Wide part : parts) column.cells.push_back(in_units(part, unit));
  }
  return column;
}

void add(RoundedColumn& column, int64_t cell) {
  column.cells.push_back(cell);
  column.total += cell;
}

}  // namespace

BillDigits digits_of(const Statement& statement) {
  if (statement.meter_millijoules >= kMillijoulesPerKwh) return {};
  return {true, 6, 4, kMillijoulesPerKwh / 1'000'000};
}

RoundedEnergy round_energy(const Statement& statement) {
  const int64_t unit = digits_of(statement).unit;
  const int64_t total = in_units(statement.meter_millijoules, unit);
  const bool adds_up = statement.sum_millijoules() == statement.meter_millijoules;
  std::vector<Wide> own, charged;
  for (const BillLine& line : statement.lines) {
    own.push_back(line.own_millijoules());
    charged.push_back(line.charged_millijoules());
  }
  RoundedEnergy energy;
  energy.together = round_column(own, unit, total, adds_up);
  // The same where nothing is spread: then the two columns show the same.
  energy.charged = own == charged ? energy.together : round_column(charged, unit, total, adds_up);
  for (size_t i = 0; i < statement.lines.size(); ++i) {
    const BillLine& line = statement.lines[i];
    const int64_t together = energy.together.cells[i];
    int64_t alone = in_units(line.alone_millijoules, unit);
    if (line.shared_millijoules == 0) alone = together;
    if (line.shared_millijoules > 0) alone = std::min(alone, together);
    add(energy.alone, alone);
    add(energy.shared, together - alone);
    add(energy.part, energy.charged.cells[i] - together);
  }
  return energy;
}

RoundedColumn round_amounts(const Statement& statement, int digits,
                            const std::function<double(const BillLine&)>& value) {
  constexpr double kFine = 1e6;
  std::vector<Wide> parts;
  for (const BillLine& line : statement.lines) parts.push_back(static_cast<Wide>(std::round(value(line) * kFine)));
  const auto unit = static_cast<int64_t>(kFine / std::pow(10.0, digits));
  const Wide all = std::accumulate(parts.begin(), parts.end(), Wide{0});
  return round_column(parts, unit, in_units(all, unit), true);
}

std::optional<double> sum_of_hours(const Statement& statement, std::optional<double> BillLine::*hours, int digits) {
  const double scale = std::pow(10.0, digits);
  std::optional<double> sum;
  for (const BillLine& line : statement.lines) {
    if (line.*hours) sum = sum.value_or(0) + std::round(*(line.*hours) * scale) / scale;
  }
  return sum;
}

}  // namespace gpuledger::app
