// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/bill/amounts.h"
#include "app/bill/formats.h"
#include "app/bill/sharing.h"
#include "base/quote.h"
#include "base/utf8.h"

namespace gpuledger::app {
namespace {

constexpr size_t kLongestName = 60;
constexpr size_t kLongestText = 300;
constexpr int64_t kMillijoulesPerWh = 3'600'000;

struct Column {
  std::string title;
  std::vector<std::string> cells;
};

// Small bills in Wh, so that they show more than zeros.
struct Unit {
  std::string name = "kWh";
  int64_t thousandth = kMillijoulesPerWh;  // of it, in millijoules
  int hour_digits = 2;
};

std::string decimals(int64_t thousandths) {
  const bool negative = thousandths < 0;
  const int64_t size = negative ? -thousandths : thousandths;
  return fmt::format("{}{}.{:03}", negative ? "-" : "", size / 1000, size % 1000);
}

int64_t thousandths(int64_t millijoules, const Unit& unit) {
  const Wide half = millijoules < 0 ? -unit.thousandth / 2 : unit.thousandth / 2;
  return static_cast<int64_t>((millijoules + half) / unit.thousandth);
}

std::string amount(int64_t millijoules, const Unit& unit) {
  return millijoules == 0 ? "" : decimals(thousandths(millijoules, unit));
}

// Of the rounded hours: whoever reads it adds them up.
std::optional<double> sum_of_hours(const Statement& statement, const Unit& unit) {
  const double scale = std::pow(10.0, unit.hour_digits);
  std::optional<double> sum;
  for (const BillLine& line : statement.lines) {
    if (line.gpu_hours) sum = sum.value_or(0) + std::round(*line.gpu_hours * scale) / scale;
  }
  return sum;
}

std::string hours(const std::optional<double>& value, const Unit& unit) {
  return value ? fmt::format("{:.{}f}", *value, unit.hour_digits) : std::string();
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
void add(std::vector<Column>& columns, const std::string& title, const Statement& statement, const std::string& last,
         const Cell& cell) {
  Column column{title, {}};
  for (const BillLine& line : statement.lines) column.cells.push_back(cell(line));
  column.cells.push_back(last);
  columns.push_back(std::move(column));
}

// Rounded so that the column adds up to its last line: whoever pays adds it up.
void add_amounts(std::vector<Column>& columns, const std::string& title, const Statement& statement, int digits,
                 double (*value)(const BillLine&)) {
  constexpr double kFine = 1e6;
  std::vector<Wide> parts;
  Wide all = 0;
  for (const BillLine& line : statement.lines) {
    parts.push_back(std::llround(value(line) * kFine));
    all += parts.back();
  }
  const double scale = std::pow(10.0, digits);
  const auto unit = static_cast<int64_t>(kFine / scale);
  const auto total = static_cast<int64_t>((all + (all < 0 ? -unit : unit) / 2) / unit);
  Column column{title, {}};
  for (const int64_t part : round_parts(parts, unit, total)) {
    column.cells.push_back(fmt::format("{:.{}f}", static_cast<double>(part) / scale, digits));
  }
  column.cells.push_back(fmt::format("{:.{}f}", static_cast<double>(total) / scale, digits));
  columns.push_back(std::move(column));
}

// Thousandths of the unit, by line, that add up to the meter.
std::vector<int64_t> charged(const Statement& statement, const Unit& unit, int64_t total) {
  std::vector<Wide> parts;
  for (const BillLine& line : statement.lines) parts.push_back(line.charged_millijoules());
  if (statement.sum_millijoules() == statement.meter_millijoules) return round_parts(parts, unit.thousandth, total);
  std::vector<int64_t> plain;
  for (const Wide part : parts) plain.push_back(thousandths(static_cast<int64_t>(part), unit));
  return plain;
}

void add_energy(std::vector<Column>& columns, const Statement& statement, const Unit& unit) {
  const bool spread = statement.spread != Spread::kKeep;
  const int64_t total = thousandths(statement.meter_millijoules, unit);
  const std::vector<int64_t> sums = charged(statement, unit, total);
  Column alone{"alone " + unit.name, {}}, shared{"shared " + unit.name, {}},
      together{(spread ? "charged " : "together ") + unit.name, {}};
  for (size_t i = 0; i < sums.size(); ++i) {
    const BillLine& line = statement.lines[i];
    int64_t first = thousandths(line.alone_millijoules, unit);
    int64_t second = thousandths(line.shared_millijoules, unit);
    if (!spread) {  // rows add up too
      if (line.shared_millijoules == 0) first = sums[i];
      second = sums[i] - first;
    }
    alone.cells.push_back(line.alone_millijoules == 0 ? "" : decimals(first));
    shared.cells.push_back(line.shared_millijoules == 0 ? "" : decimals(second));
    together.cells.push_back(decimals(sums[i]));
  }
  alone.cells.emplace_back();
  shared.cells.emplace_back();
  together.cells.push_back(decimals(total));
  columns.push_back(std::move(alone));
  columns.push_back(std::move(shared));
  add(columns, "± " + unit.name, statement, "", [&](const BillLine& line) {
    return line.standard_error_joules ? amount(std::llround(*line.standard_error_joules * 1000), unit) : "";
  });
  if (spread) {
    add(columns, "spread " + unit.name, statement, "",
        [&](const BillLine& line) { return amount(line.spread_millijoules, unit); });
  }
  columns.push_back(std::move(together));
}

std::vector<Column> columns_of(const Statement& statement, const Unit& unit) {
  const auto any = [&](const auto& has) { return std::any_of(statement.lines.begin(), statement.lines.end(), has); };
  std::vector<Column> columns;
  add(columns, "", statement, "the meter",
      [](const BillLine& line) { return clean_text(line_name(line), kLongestName); });
  add_energy(columns, statement, unit);
  add(columns, "GPU h", statement, hours(sum_of_hours(statement, unit), unit),
      [&](const BillLine& line) { return hours(line.gpu_hours, unit); });
  if (any([](const BillLine& line) { return line.allocated_gpu_hours.has_value(); })) {
    add(columns, "allocated h", statement, "",
        [&](const BillLine& line) { return hours(line.allocated_gpu_hours, unit); });
    add(columns, "unused h", statement, "", [&](const BillLine& line) { return hours(line.unused_gpu_hours, unit); });
  }
  const BillPrices& prices = statement.prices;
  if (prices.per_kwh > 0 || !prices.per_gpu_hour.empty()) {
    add_amounts(columns, "cost " + prices.currency, statement, 2, [](const BillLine& line) { return line.cost(); });
  }
  if (statement.has_co2e) {
    add_amounts(columns, "CO2e kg", statement, 3, [](const BillLine& line) { return line.co2e_grams / 1000; });
  }
  return columns;
}

std::string grid(const std::vector<Column>& columns) {
  std::vector<size_t> widths;
  size_t all = 0;
  for (const Column& column : columns) {
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
  line([](const Column& column) { return column.title; });
  out += rule;
  const size_t rows = columns.front().cells.size();
  for (size_t row = 0; row < rows; ++row) {
    if (row + 1 == rows) out += rule;
    line([&](const Column& column) { return column.cells[row]; });
  }
  return out;
}

std::string notes(const Statement& statement, const Unit& unit) {
  std::string out = "The GPUs were metered for " + hours(statement.meter_gpu_hours, unit) + " GPU hours.\n";
  const BillPrices& prices = statement.prices;
  if (prices.per_kwh > 0 || !prices.per_gpu_hour.empty()) {
    out += "Cost: ";
    if (prices.per_kwh > 0) out += fmt::format("{} {} per kWh x PUE {}", prices.per_kwh, prices.currency, prices.pue);
    for (const auto& [model, price] : prices.per_gpu_hour) {
      if (!out.ends_with(": ")) out += "; ";
      out += fmt::format("{} {} per GPU hour of {}", price, prices.currency, clean_text(model, kLongestText));
    }
    out += ".\n";
  }
  if (std::any_of(statement.lines.begin(), statement.lines.end(),
                  [](const BillLine& line) { return line.standard_error_joules.has_value(); })) {
    out += "Alone is measured. Shared is estimated, ± is one standard error of it. The sum is measured.\n";
  }
  for (const std::string& remark : statement.remarks) out += "Note: " + clean_text(remark, kLongestText) + "\n";
  if (statement.complete()) {
    out += "Complete: the lines add up to the meter.\n";
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
  Unit unit;
  constexpr int64_t kSmall = 1'000 * kMillijoulesPerWh;
  if (statement.meter_millijoules < kSmall) unit = {"Wh", kMillijoulesPerWh / 1000, 4};
  const std::string head = fmt::format(
      "GPU bill{}, {} to {}, by {}\nfrom {}, made {} by {}\n\n", statement.complete() ? "" : " (INCOMPLETE)",
      time_text(statement.span.begin), time_text(statement.span.end), clean_text(statement.by, kLongestText),
      clean_text(statement.server, kLongestText), time_text(statement.generated_at), statement.generated_by);
  return head + grid(columns_of(statement, unit)) + "\n" + notes(statement, unit);
}

}  // namespace gpuledger::app
