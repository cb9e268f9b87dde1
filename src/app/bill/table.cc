// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/bill/amounts.h"
#include "app/bill/formats.h"
#include "app/bill/line_words.h"
#include "app/bill/rounded.h"
#include "app/bill/tokens.h"
#include "base/quote.h"
#include "base/utf8.h"

namespace gpuledger::app {
namespace {

constexpr size_t kLongestName = 60;
constexpr size_t kLongestText = 300;

struct TableColumn {
  std::string title;
  std::vector<std::string> cells;
};

// Small bills in Wh. Both have three decimals.
const char* unit_name(const BillDigits& digits) {
  return digits.small ? "Wh" : "kWh";
}

std::string decimals(int64_t thousandths) {
  const bool negative = thousandths < 0;
  const int64_t size = negative ? -thousandths : thousandths;
  return fmt::format("{}{}.{:03}", negative ? "-" : "", size / 1000, size % 1000);
}

std::string hours_text(const std::optional<double>& value, const BillDigits& digits) {
  return value ? fmt::format("{:.{}f}", *value, digits.hours) : std::string();
}

// Characters, not bytes.
size_t width(std::string_view text) {
  return text.size() - static_cast<size_t>(std::count_if(text.begin(), text.end(), continues_utf8));
}

std::string padded(const std::string& text, size_t columns, bool left) {
  const std::string space(columns - std::min(columns, width(text)), ' ');
  return left ? text + space : space + text;
}

template <typename Cell>
void add(std::vector<TableColumn>& columns, const std::string& title, const Statement& statement,
         const std::string& last, const Cell& cell) {
  TableColumn column{title, {}};
  for (const BillLine& line : statement.lines) column.cells.push_back(cell(line));
  column.cells.push_back(last);
  columns.push_back(std::move(column));
}

void add_amounts(std::vector<TableColumn>& columns, const std::string& title, const Statement& statement, int digits,
                 double (*value)(const BillLine&)) {
  const double scale = std::pow(10.0, digits);
  const RoundedColumn rounded = round_amounts(statement, digits, value);
  const auto text = [&](int64_t amount) { return fmt::format("{:.{}f}", static_cast<double>(amount) / scale, digits); };
  TableColumn column{title, {}};
  for (const int64_t amount : rounded.cells) column.cells.push_back(text(amount));
  column.cells.push_back(text(rounded.total));
  columns.push_back(std::move(column));
}

// What is 0 is left out, unless `zeros`.
void add_energy(std::vector<TableColumn>& columns, const std::string& title, const Statement& statement,
                const std::vector<int64_t>& cells, bool zeros, int64_t (*exact)(const BillLine&)) {
  TableColumn column{title, {}};
  for (size_t i = 0; i < cells.size(); ++i) {
    column.cells.push_back(!zeros && exact(statement.lines[i]) == 0 ? "" : decimals(cells[i]));
  }
  column.cells.emplace_back();
  columns.push_back(std::move(column));
}

void add_energies(std::vector<TableColumn>& columns, const Statement& statement, const BillDigits& digits) {
  const bool spread = statement.spread != Spread::kKeep;
  const std::string unit = unit_name(digits);
  const RoundedEnergy energy = round_energy(statement);
  add_energy(columns, "alone " + unit, statement, energy.alone.cells, false,
             [](const BillLine& line) { return line.alone_millijoules; });
  add_energy(columns, "shared " + unit, statement, energy.shared.cells, false,
             [](const BillLine& line) { return line.shared_millijoules; });
  add(columns, "± " + unit, statement, "", [&](const BillLine& line) {
    const double error = line.standard_error_joules.value_or(0) * 1000 / static_cast<double>(digits.unit);
    return error == 0 ? std::string() : decimals(std::llround(error));
  });
  if (spread) {
    add_energy(columns, "spread " + unit, statement, energy.part.cells, false,
               [](const BillLine& line) { return line.spread_millijoules; });
  }
  add_energy(columns, (spread ? "charged " : "together ") + unit, statement, energy.charged.cells, true,
             [](const BillLine& line) { return line.charged_millijoules(); });
  columns.back().cells.back() = decimals(energy.charged.total);
}

void add_tokens_of(std::vector<TableColumn>& columns, const Statement& statement) {
  const auto add_each = [&](const std::string& title, int digits, const auto& value) {
    add(columns, title, statement, "", [&](const BillLine& line) {
      return line.tokens ? fmt::format("{:.{}f}", value(line), digits) : std::string();
    });
  };
  const auto add_millions = [&](const std::string& title, double (*value)(const BillLine&)) {
    add_amounts(columns, title, statement, 3, value);
    for (size_t i = 0; i < statement.lines.size(); ++i) {
      if (!statement.lines[i].tokens) columns.back().cells[i].clear();
    }
  };
  add_millions("M tokens", millions_of_tokens);
  add_millions("generated M", millions_generated);
  add_each("J/token", 4, joules_per_token);
  add(columns, "± J/token", statement, "", [](const BillLine& line) {
    const bool known = line.tokens && line.standard_error_joules;
    return known ? fmt::format("{:.4f}", *line.standard_error_joules / line.tokens->all()) : std::string();
  });
  if (has_cost(statement)) {
    add_each(statement.prices.currency + "/M tokens", 4,
             [](const BillLine& line) { return per_million_tokens(line, line.cost()); });
  }
  if (statement.has_co2e) {
    add_each("CO2e g/M tokens", 1, [](const BillLine& line) { return per_million_tokens(line, line.co2e_grams); });
  }
}

std::vector<TableColumn> columns_of(const Statement& statement, const BillDigits& digits) {
  const auto any = [&](const auto& has) { return std::any_of(statement.lines.begin(), statement.lines.end(), has); };
  std::vector<TableColumn> columns;
  add(columns, "", statement, "the meter",
      [](const BillLine& line) { return clean_text(line_name(line), kLongestName); });
  add_energies(columns, statement, digits);
  add(columns, "GPU h", statement, hours_text(sum_of_hours(statement, &BillLine::gpu_hours, digits.hours), digits),
      [&](const BillLine& line) { return hours_text(line.gpu_hours, digits); });
  if (any([](const BillLine& line) { return line.allocated_gpu_hours.has_value(); })) {
    add(columns, "allocated h", statement, "",
        [&](const BillLine& line) { return hours_text(line.allocated_gpu_hours, digits); });
    add(columns, "unused h", statement, "",
        [&](const BillLine& line) { return hours_text(line.unused_gpu_hours, digits); });
  }
  const BillPrices& prices = statement.prices;
  if (has_cost(statement)) {
    add_amounts(columns, "cost " + prices.currency, statement, 2, [](const BillLine& line) { return line.cost(); });
  }
  if (statement.has_co2e) {
    add_amounts(columns, "CO2e kg", statement, 3, [](const BillLine& line) { return line.co2e_grams / 1000; });
  }
  if (statement.tokens()) add_tokens_of(columns, statement);
  return columns;
}

std::string grid(const std::vector<TableColumn>& columns) {
  std::vector<size_t> widths;
  size_t all = 0;
  for (const TableColumn& column : columns) {
    size_t widest = width(column.title);
    for (const std::string& cell : column.cells) widest = std::max(widest, width(cell));
    widths.push_back(widest);
    all += widest + 2;
  }
  std::string out;
  const auto line = [&](const auto& cell) {
    std::string text;
    for (size_t i = 0; i < columns.size(); ++i)
      text += (i == 0 ? "" : "  ") + padded(cell(columns[i]), widths[i], i == 0);
    while (text.ends_with(' ')) text.pop_back();
    out += text + "\n";
  };
  const std::string rule = std::string(all - 2, '-') + "\n";
  line([](const TableColumn& column) { return column.title; });
  out += rule;
  const size_t rows = columns.front().cells.size();
  for (size_t row = 0; row < rows; ++row) {
    if (row + 1 == rows) out += rule;
    line([&](const TableColumn& column) { return column.cells[row]; });
  }
  return out;
}

std::string notes(const Statement& statement, const BillDigits& digits) {
  std::string out = "The GPUs were metered for " + hours_text(statement.meter_gpu_hours, digits) + " GPU hours.\n";
  for (const std::string& words : statement.prices.words()) out += "Cost: " + words + ".\n";
  if (std::any_of(statement.lines.begin(), statement.lines.end(),
                  [](const BillLine& line) { return line.standard_error_joules.has_value(); })) {
    out += "Alone is measured. Shared is estimated, ± is one standard error of it. The sum is measured.\n";
  }
  for (const std::string& remark : statement.remarks) out += "Note: " + clean_text(remark, kLongestText) + "\n";
  if (statement.over_at) out += not_over_text(statement) + "\n";
  if (statement.complete()) {
    out += std::string("Complete") + (statement.over_at ? " so far" : "") + ": the lines add up to the meter.\n";
    return out;
  }
  for (const BillGap& gap : statement.gaps) {
    out += fmt::format("Missing: {}, {} to {}: {}\n", clean_text(gap.node, kLongestText), time_text(gap.span.begin),
                       time_text(gap.span.end), clean_text(gap.why, kLongestText));
  }
  out += "INCOMPLETE: energy of the times above is not in this bill.\n";
  return out;
}

}  // namespace

std::string bill_table(const Statement& statement) {
  const BillDigits digits = digits_of(statement);
  const char* const state = statement.is_final() ? "" : statement.complete() ? " (NOT OVER)" : " (INCOMPLETE)";
  const std::string head = fmt::format(
      "GPU bill{}, {} to {}, by {}\nfrom {}, made {} by {}\n\n", state, time_text(statement.span.begin),
      time_text(statement.span.end), clean_text(statement.by, kLongestText), clean_text(statement.server, kLongestText),
      time_text(statement.generated_at), statement.generated_by);
  return head + grid(columns_of(statement, digits)) + "\n" + notes(statement, digits);
}

}  // namespace gpuledger::app
