// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "app/bill/amounts.h"
#include "app/bill/csv_cell.h"
#include "app/bill/formats.h"
#include "app/bill/tokens.h"

namespace gpuledger::app {
namespace {

std::string joules(int64_t millijoules) {
  const std::string sign = millijoules < 0 ? "-" : "";
  const uint64_t size = millijoules < 0 ? 0 - static_cast<uint64_t>(millijoules) : static_cast<uint64_t>(millijoules);
  return fmt::format("{}{}.{:03}", sign, size / 1000, size % 1000);
}

std::string optional_number(const std::optional<double>& value) {
  return value ? fmt::format("{:.6f}", *value) : std::string();
}

// The end of a row.
std::string tokens_of(const Statement& statement, const BillLine& line) {
  if (!line.tokens) return ",,,,,,";
  const std::optional<double> error = line.standard_error_joules;
  return fmt::format(",{:.0f},{:.0f},{:.9f},{},{:.9f},{}", line.tokens->prompt, line.tokens->generated,
                     joules_per_token(line), error ? fmt::format("{:.9f}", *error / line.tokens->all()) : "",
                     per_million_tokens(line, line.cost()),
                     statement.has_co2e ? fmt::format("{:.6f}", per_million_tokens(line, line.co2e_grams)) : "");
}

std::string kwh(int64_t millijoules) {
  return fmt::format("{:.9f}", to_kwh(millijoules));
}

}  // namespace

std::string bill_csv(const Statement& statement) {
  std::string out =
      "begin,end,by,kind,name,alone_joules,shared_joules,standard_error_joules,spread_joules,charged_joules,charged_"
      "kwh,"
      "gpu_hours,allocated_gpu_hours,unused_gpu_hours,energy_cost,gpu_hour_cost,cost,currency,co2e_grams,complete,"
      "metered_gpu_hours";
  const std::optional<BillTokens> tokens = statement.tokens();
  out += tokens ? ",prompt_tokens,generated_tokens,joules_per_token,joules_per_token_standard_error,"
                  "cost_per_million_tokens,co2e_grams_per_million_tokens\n"
                : "\n";
  const std::string start =
      utc_text(statement.span.begin) + "," + utc_text(statement.span.end) + "," + csv_text(statement.by);
  const char* const complete = statement.is_final() ? "true" : "false";
  double energy_cost = 0, hour_cost = 0, grams = 0;
  const auto co2e = [&](double value) { return statement.has_co2e ? fmt::format("{:.3f}", value) : std::string(); };
  for (const BillLine& line : statement.lines) {
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{:.6f},{:.6f},{:.6f},{},{},{},{}\n", start,
                       kind_name(line.kind), csv_text(line.name), joules(line.alone_millijoules),
                       joules(line.shared_millijoules), optional_number(line.standard_error_joules),
                       joules(line.spread_millijoules), joules(line.charged_millijoules()),
                       kwh(line.charged_millijoules()), optional_number(line.gpu_hours),
                       optional_number(line.allocated_gpu_hours), optional_number(line.unused_gpu_hours),
                       line.energy_cost, line.gpu_hour_cost, line.cost(), statement.prices.currency,
                       co2e(line.co2e_grams), complete, tokens ? tokens_of(statement, line) : "");
    energy_cost += line.energy_cost;
    hour_cost += line.gpu_hour_cost;
    grams += line.co2e_grams;
  }
  return out + fmt::format("{},meter,\"\",,,,,{},{},{},,,{:.6f},{:.6f},{:.6f},{},{},{},{:.6f}{}\n", start,
                           joules(statement.meter_millijoules), kwh(statement.meter_millijoules),
                           optional_number(statement.work_gpu_hours()), energy_cost, hour_cost, energy_cost + hour_cost,
                           statement.prices.currency, co2e(grams), complete, statement.meter_gpu_hours,
                           tokens ? fmt::format(",{:.0f},{:.0f},,,,", tokens->prompt, tokens->generated) : "");
}

}  // namespace gpuledger::app
