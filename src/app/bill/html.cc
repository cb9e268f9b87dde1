// SPDX-License-Identifier: Apache-2.0
#include "app/bill/html.h"

#include <fmt/core.h>

#include <cmath>
#include <vector>

#include "app/bill/amounts.h"
#include "app/bill/html_parts.h"
#include "app/bill/line_words.h"
#include "app/bill/rounded.h"
#include "app/bill/tokens.h"
#include "base/quote.h"
#include "base/units.h"

namespace gpuledger::app {
namespace {

constexpr const char* kAbsent = "\u2013";
constexpr size_t kMostGaps = 40;

struct HtmlColumn {
  std::string title;
  std::string unit;
  std::vector<std::string> cells;  // by line
  std::string total;
};

// Midnight to midnight is shown as days.
std::string moment(std::chrono::sys_seconds time, bool with_time) {
  const std::string text = utc_text(time);
  return with_time ? text.substr(0, 10) + " " + text.substr(11, 5) : text.substr(0, 10);
}

std::string span_text(const BillSpan& span) {
  const auto midnight = [](std::chrono::sys_seconds time) {
    return std::chrono::floor<std::chrono::days>(time) == time;
  };
  const bool with_time = !midnight(span.begin) || !midnight(span.end);
  return moment(span.begin, with_time) + " to " + moment(span.end, with_time);
}

template <typename Value>
double total_of(const Statement& statement, Value value) {
  double sum = 0;
  for (const BillLine& line : statement.lines) sum += value(line);
  return sum;
}

HtmlColumn hours_column(const Statement& statement, const char* title, std::optional<double> BillLine::*hours) {
  const int digits = digits_of(statement).hours;
  const auto text = [&](const std::optional<double>& value) {
    return value ? grouped_decimal(*value, digits) : std::string(kAbsent);
  };
  HtmlColumn column{title, "hours", {}, text(sum_of_hours(statement, hours, digits))};
  for (const BillLine& line : statement.lines) column.cells.push_back(text(line.*hours));
  return column;
}

HtmlColumn rounded_column(const char* title, const std::string& unit, const RoundedColumn& rounded, int digits) {
  const double scale = std::pow(10.0, digits);
  const auto text = [&](int64_t amount) { return grouped_decimal(static_cast<double>(amount) / scale, digits); };
  HtmlColumn column{title, unit, {}, text(rounded.total)};
  for (const int64_t amount : rounded.cells) column.cells.push_back(text(amount));
  return column;
}

int money_digits(double sum) {
  return sum >= 1 ? 2 : 6;
}

// Energy and hours add up to the cost, line by line.
void add_money(const Statement& statement, std::vector<HtmlColumn>& columns) {
  if (!has_cost(statement)) return;
  const std::string& currency = statement.prices.currency;
  const auto cost_of = [](const BillLine& line) { return line.cost(); };
  const int digits = money_digits(total_of(statement, cost_of));
  const RoundedColumn cost = round_amounts(statement, digits, cost_of);
  if (!statement.prices.models().empty() && statement.prices.has_kwh_price()) {
    const RoundedColumn energy =
        round_amounts(statement, digits, [](const BillLine& line) { return line.energy_cost; });
    RoundedColumn hours = cost;
    hours.total -= energy.total;
    for (size_t i = 0; i < hours.cells.size(); ++i) hours.cells[i] -= energy.cells[i];
    columns.push_back(rounded_column("Energy", currency, energy, digits));
    columns.push_back(rounded_column("GPU hours", currency, hours, digits));
  }
  columns.push_back(rounded_column("Cost", currency, cost, digits));
}

int weight_digits(double kilograms) {
  return kilograms >= 1 ? 3 : 6;
}

void add_energies(const Statement& statement, std::vector<HtmlColumn>& columns) {
  const BillDigits digits = digits_of(statement);
  const RoundedEnergy energy = round_energy(statement);
  const auto add = [&](const char* title, const RoundedColumn& column) {
    columns.push_back(rounded_column(title, "kWh", column, digits.kwh));
  };
  add("Measured", energy.alone);
  add("Estimated", energy.shared);
  columns.back().unit = "kWh, \u00b1 standard error";
  for (size_t i = 0; i < statement.lines.size(); ++i) {
    if (const auto error = statement.lines[i].standard_error_joules) {
      columns.back().cells[i] += fmt::format(" <span class=\"error\">\u00b1\u00a0{}</span>",
                                             grouped_decimal(*error / kJoulesPerKwh, digits.kwh));
    }
  }
  add("Together", energy.together);
  if (statement.spread == Spread::kKeep) return;
  add("Part of nobody\u2019s", energy.part);
  add("Charged", energy.charged);
}

std::vector<HtmlColumn> token_columns(const Statement& statement) {
  std::vector<HtmlColumn> columns;
  const auto add = [&](const char* title, const std::string& unit, const auto& value) {
    HtmlColumn column{title, unit, {}, kAbsent};
    for (const BillLine& line : statement.lines) column.cells.push_back(line.tokens ? value(line) : kAbsent);
    columns.push_back(std::move(column));
  };
  columns.push_back(rounded_column("Tokens", "million", round_amounts(statement, 3, millions_of_tokens), 3));
  columns.push_back(rounded_column("of them generated", "million", round_amounts(statement, 3, millions_generated), 3));
  add("Energy of a token", "J, \u00b1 standard error", [](const BillLine& line) {
    std::string text = grouped_decimal(joules_per_token(line), 4);
    if (const auto error = line.standard_error_joules) {
      text +=
          fmt::format(" <span class=\"error\">\u00b1\u00a0{}</span>", grouped_decimal(*error / line.tokens->all(), 4));
    }
    return text;
  });
  if (has_cost(statement)) {
    add("Cost of a million tokens", statement.prices.currency,
        [](const BillLine& line) { return grouped_decimal(per_million_tokens(line, line.cost()), 4); });
  }
  if (statement.has_co2e) {
    add("CO\u2082e of a million tokens", "g",
        [](const BillLine& line) { return grouped_decimal(per_million_tokens(line, line.co2e_grams), 1); });
  }
  return columns;
}

std::vector<HtmlColumn> columns_of(const Statement& statement) {
  std::vector<HtmlColumn> columns;
  add_energies(statement, columns);
  columns.push_back(hours_column(statement, "GPU work", &BillLine::gpu_hours));
  columns.push_back(hours_column(statement, "GPU allocated", &BillLine::allocated_gpu_hours));
  columns.push_back(hours_column(statement, "of it unused", &BillLine::unused_gpu_hours));
  add_money(statement, columns);
  if (statement.has_co2e) {
    const auto kilograms = [](const BillLine& line) { return line.co2e_grams / 1000; };
    const int digits = weight_digits(total_of(statement, kilograms));
    columns.push_back(rounded_column("CO\u2082e", "kg", round_amounts(statement, digits, kilograms), digits));
  }
  return columns;
}

// Of all lines, or of those that `shown` says.
std::string table(const Statement& statement, const std::vector<HtmlColumn>& columns, const std::string& last,
                  bool (*shown)(const BillLine&) = nullptr) {
  std::string out =
      fmt::format("<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">{}</th>", html_name(statement.by));
  for (const HtmlColumn& column : columns)
    out += fmt::format("<th scope=\"col\">{}<small>{}</small></th>", column.title, html_name(column.unit));
  out += "</tr></thead>\n<tbody>\n";
  for (size_t i = 0; i < statement.lines.size(); ++i) {
    const BillLine& line = statement.lines[i];
    if (shown != nullptr && !shown(line)) continue;
    out += fmt::format("<tr class=\"{}\"><th scope=\"row\"><bdi>{}</bdi></th>", kind_name(line.kind),
                       html_name(line_name(line)));
    for (const HtmlColumn& column : columns) out += "<td>" + column.cells[i] + "</td>";
    out += "</tr>\n";
  }
  out += "</tbody>\n<tfoot><tr><th scope=\"row\">" + last + "</th>";
  for (const HtmlColumn& column : columns) out += "<td>" + column.total + "</td>";
  return out + "</tr></tfoot>\n</table></div>\n";
}

std::string not_over_box(const Statement& statement) {
  if (!statement.over_at) return {};
  return "<section class=\"incomplete\" role=\"note\"><strong>NOT OVER</strong> \u2013 " + not_over_text(statement) +
         "</section>\n";
}

std::string incomplete_box(const Statement& statement) {
  if (statement.complete()) return {};
  std::string out =
      "<section class=\"incomplete\" role=\"alert\"><strong>INCOMPLETE</strong> \u2013 this bill does not cover all of "
      "its time. What is missing is in no line.\n<ul>\n";
  if (statement.sum_millijoules() != statement.meter_millijoules)
    out += fmt::format("<li>The lines add up to {} kWh, the meter to {} kWh.</li>\n",
                       exact_kwh(statement.sum_millijoules()), exact_kwh(statement.meter_millijoules));
  for (size_t i = 0; i < statement.gaps.size() && i < kMostGaps; ++i) {
    const BillGap& gap = statement.gaps[i];
    out += fmt::format("<li><bdi>{}</bdi>: {} to {} UTC: {}</li>\n", html_name(gap.node), moment(gap.span.begin, true),
                       moment(gap.span.end, true), html_name(gap.why));
  }
  if (statement.gaps.size() > kMostGaps)
    out += fmt::format("<li>and {} more</li>\n", statement.gaps.size() - kMostGaps);
  return out + "</ul></section>\n";
}

std::string key_figures(const Statement& statement) {
  std::string out = "<dl class=\"figures\">\n";
  const auto figure = [&](const std::string& name, const std::string& value) {
    out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, value);
  };
  const double meter = to_kwh(statement.meter_millijoules);
  figure("Energy of the GPUs", grouped_decimal(meter, digits_of(statement).kwh) + " kWh");
  const double nobody = total_of(statement, [](const BillLine& line) {
    return line.kind == LineKind::kNobody ? to_kwh(line.own_millijoules()) : 0.0;
  });
  if (meter > 0) figure("of it nobody\u2019s", grouped_decimal(100 * nobody / meter, 1) + " %");
  figure("GPU hours with readings", grouped_decimal(statement.meter_gpu_hours, 1));
  if (has_cost(statement)) {
    const double cost = total_of(statement, [](const BillLine& line) { return line.cost(); });
    figure("Cost", grouped_decimal(cost, money_digits(cost)) + " " + html_name(statement.prices.currency));
  }
  if (statement.has_co2e) {
    const double kilograms = total_of(statement, [](const BillLine& line) { return line.co2e_grams; }) / 1000;
    figure("CO\u2082e", grouped_decimal(kilograms, weight_digits(kilograms)) + " kg");
  }
  return out + "</dl>\n";
}

std::string price_remark(const Statement& statement) {
  const BillPrices& prices = statement.prices;
  std::string out = "<p class=\"remark\">";
  if (!prices.rows.empty()) {
    for (const std::string& words : prices.words()) out += html_name(words) + ". ";
  } else if (prices.per_kwh != 0)
    out += fmt::format("Energy costs {} {} per kWh. ", plain_decimal(prices.per_kwh), html_name(prices.currency));
  for (const auto& [model, price] : prices.rows.empty() ? prices.per_gpu_hour : std::map<std::string, double>())
    out += fmt::format("An hour of a GPU {} costs {} {}. ", html_name(model), plain_decimal(price),
                       html_name(prices.currency));
  if (!prices.models().empty())
    out += "GPU hours are paid as allocated where the allocation is known, else as worked. ";
  if (!has_cost(statement)) out += "No price was given, so there is no cost. ";
  out += prices.rows.empty()
             ? fmt::format("Energy is measured at the GPUs; cost and CO\u2082e count {} times as much (PUE). ",
                           plain_decimal(prices.pue))
             : "Energy is measured at the GPUs; cost and CO\u2082e count as many times as much as the PUE says. ";
  if (statement.has_co2e && prices.co2e_grams_per_kwh)
    out += fmt::format("A kWh is counted as {} g of CO\u2082e. ", plain_decimal(*prices.co2e_grams_per_kwh));
  if (statement.spread != Spread::kKeep)
    out += fmt::format("Energy of nobody and of unknown owners is spread over the others by {}. ",
                       statement.spread == Spread::kByUse ? "their use" : "their allocation");
  return out + "Numbers are rounded for this page; the CSV has all digits.</p>\n";
}

constexpr const char* kEstimateRemark =
    "<p class=\"remark\">While one process is alone on a GPU, its energy is <b>measured</b> by the GPU\u2019s counter. "
    "While several share a GPU, the measured energy of that GPU is divided among them by a model of how long each "
    "worked and how much power its work takes: this part is <b>estimated</b>, and \u00b1 is one standard error of it. "
    "Only the division is estimated, never the sum: all lines together are the GPUs\u2019 energy counters. Energy that "
    "belongs to no process, for example of a GPU without processes, is listed as nobody\u2019s with its reason.</p>\n";

}  // namespace

std::string bill_html(const Statement& statement) {
  const std::string title =
      fmt::format("GPU bill of {}, {}", html_name(site_title(statement)), span_text(statement.span));
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  out += "<title>" + title + "</title>\n<style>" + kBillStyle + "</style></head>\n<body>\n";
  out += fmt::format("<h1>GPU bill of <bdi>{}</bdi></h1>\n<p class=\"when\">{} UTC, the end not included, by {}</p>\n",
                     html_name(site_title(statement)), span_text(statement.span), html_name(statement.by));
  out += not_over_box(statement) + incomplete_box(statement);
  out += key_figures(statement);
  out += table(statement, columns_of(statement), "The meter: the GPUs\u2019 energy counters");
  if (statement.tokens()) {
    // Apart: one table of both would be wider than paper.
    out += "<h2>Tokens</h2>\n" + table(statement, token_columns(statement), "Together",
                                       [](const BillLine& line) { return line.tokens.has_value(); });
  }
  out += "<h2>Energy by line, in kWh</h2>\n<figure style=\"margin:0\">\n" + bill_chart(statement) + "</figure>\n";
  out += "<h2>How to read this</h2>\n";
  out += kEstimateRemark;
  out += price_remark(statement);
  for (const std::string& remark : statement.remarks) out += "<p class=\"remark\">" + html_name(remark) + "</p>\n";
  out +=
      fmt::format("<footer>Made by {} at {} UTC from {}.</footer>\n</body></html>\n", html_name(statement.generated_by),
                  moment(statement.generated_at, true), html_name(statement.server));
  return out;
}

}  // namespace gpuledger::app
