// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "app/bill/statement.h"

namespace gpuledger::app {

inline std::chrono::sys_seconds at(int year, unsigned month, unsigned day, int hour = 0, int minute = 0) {
  using namespace std::chrono;
  return sys_days(std::chrono::year(year) / month / day) + hours(hour) + minutes(minute);
}

inline BillLine bill_line(LineKind kind, std::string name, int64_t alone, int64_t shared) {
  BillLine line;
  line.kind = kind;
  line.name = std::move(name);
  line.alone_millijoules = alone;
  line.shared_millijoules = shared;
  if (shared != 0) line.standard_error_joules = static_cast<double>(shared) / 1000 * 0.04;
  return line;
}

inline void price(Statement& statement) {
  for (BillLine& line : statement.lines) {
    const double kwh = static_cast<double>(line.charged_millijoules()) / 3.6e9 * statement.prices.pue;
    line.energy_cost = kwh * statement.prices.per_kwh;
    line.co2e_grams = kwh * statement.prices.co2e_grams_per_kwh.value_or(0);
    const auto hours = line.allocated_gpu_hours ? line.allocated_gpu_hours : line.gpu_hours;
    if (hours) line.held_gpu_hours = {{"NVIDIA H100", *hours}};
    const auto price = statement.prices.per_gpu_hour.find("NVIDIA H100");
    if (price != statement.prices.per_gpu_hour.end()) line.gpu_hour_cost = hours.value_or(0) * price->second;
  }
}

// October of a site: two teams, what has no team, what nobody used. The energies have no short form in kWh.
inline Statement sample_statement() {
  Statement statement;
  statement.span = {at(2026, 10, 1), at(2026, 11, 1)};
  statement.by = "label:team";
  statement.server = "http://prometheus:9090";
  statement.site = "Example site";
  statement.generated_by = "gpu-ledger 0.2.0";
  statement.generated_at = at(2026, 11, 2, 6, 30);
  statement.prices = {"EUR", 0.25, {{"NVIDIA H100", 1.5}}, 1.3, 380.0};
  statement.has_co2e = true;
  BillLine vision = bill_line(LineKind::kOwner, "vision", 1'485'720'000'001, 411'300'000'007);
  vision.properties = {{"cluster", "east"}, {"label_team", "vision"}, {"namespace", "research"}};
  vision.gpu_hours = 2900.25;
  vision.allocated_gpu_hours = 3720;
  vision.unused_gpu_hours = 819.75;
  BillLine speech = bill_line(LineKind::kOwner, "speech", 301'000'000'003, 299'999'999'999);
  speech.properties = {{"cluster", "east"}, {"label_team", "speech"}};
  speech.gpu_hours = 801.5;
  BillLine rest = bill_line(LineKind::kNoGroup, "container: triton", 12'345'678'901, 0);
  rest.gpu_hours = 22;
  statement.lines = {vision,
                     speech,
                     rest,
                     bill_line(LineKind::kUnknown, "unknown", 0, 1'000'001),
                     bill_line(LineKind::kNobody, "idle", 600'700'000'777, 0),
                     bill_line(LineKind::kNobody, "exporter_down", 3'000'000'011, 0)};
  price(statement);
  statement.meter_millijoules = statement.sum_millijoules();
  statement.meter_gpu_hours = 11904;
  return statement;
}

// The same, with what belongs to nobody spread over the owners.
inline Statement spread_statement() {
  Statement statement = sample_statement();
  statement.spread = Spread::kByUse;
  int64_t nobody = 0;
  for (BillLine& line : statement.lines)
    if (line.kind == LineKind::kNobody) {
      nobody += line.own_millijoules();
      line.spread_millijoules = -line.own_millijoules();
    }
  statement.lines[0].spread_millijoules = nobody - nobody / 4;
  statement.lines[1].spread_millijoules = nobody / 4;
  price(statement);
  return statement;
}

}  // namespace gpuledger::app
