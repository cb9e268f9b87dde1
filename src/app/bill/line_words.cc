// SPDX-License-Identifier: Apache-2.0
#include "app/bill/line_words.h"

#include "app/bill/amounts.h"

namespace gpuledger::app {

std::string_view kind_name(LineKind kind) {
  switch (kind) {
    case LineKind::kOwner: return "owner";
    case LineKind::kNoGroup: return "no_group";
    case LineKind::kUnknown: return "unknown";
    case LineKind::kNobody: return "nobody";
  }
  return "unknown";
}

std::string line_name(const BillLine& line) {
  switch (line.kind) {
    case LineKind::kUnknown: return line.name.empty() ? "unknown" : line.name;
    case LineKind::kNobody: return "nobody: " + line.name;
    default: return line.name;
  }
}

std::string site_title(const Statement& statement) {
  return statement.site.empty() ? statement.server : statement.site;
}

std::string not_over_text(const Statement& statement) {
  if (!statement.over_at) return {};
  return "The span ends " + time_text(*statement.over_at) + " and is not over. This bill counts until " +
         time_text(statement.span.end) + ".";
}

bool has_cost(const Statement& statement) {
  return statement.prices.has_kwh_price() || !statement.prices.models().empty();
}

std::optional<double> held_gpu_hours(const BillLine& line) {
  std::optional<double> sum;
  for (const auto& [model, hours] : line.held_gpu_hours) sum = sum.value_or(0) + hours;
  return sum;
}

}  // namespace gpuledger::app
