// SPDX-License-Identifier: Apache-2.0
#include "app/bill/html.h"

#include <fmt/core.h>

#include <functional>
#include <vector>

#include "app/bill/amounts.h"
#include "app/bill/html_parts.h"
#include "app/bill/line_words.h"
#include "base/quote.h"

namespace gpuledger::app {
namespace {

constexpr const char* kAbsent = "\u2013";
constexpr size_t kMostGaps = 40;

struct Column {
  std::string title;
  std::string unit;
  std::function<std::string(const BillLine&)> cell;
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

// The sum of what is known; the dash if nothing is.
Column hours_column(const Statement& statement, const char* title, std::optional<double> BillLine::*hours) {
  bool any = false;
  for (const BillLine& line : statement.lines) any = any || (line.*hours).has_value();
  const double sum = total_of(statement, [&](const BillLine& line) { return (line.*hours).value_or(0); });
  const int decimals = decimals_for(sum);
  return {title, "hours",
          [hours, decimals](const BillLine& line) {
            return line.*hours ? grouped_decimal(*(line.*hours), decimals) : std::string(kAbsent);
          },
          any ? grouped_decimal(sum, decimals) : std::string(kAbsent)};
}

Column money_column(const Statement& statement, const char* title, const std::function<double(const BillLine&)>& cost) {
  const double sum = total_of(statement, cost);
  const int decimals = sum >= 1 ? 2 : 6;
  return {title, statement.prices.currency,
          [cost, decimals](const BillLine& line) { return grouped_decimal(cost(line), decimals); },
          grouped_decimal(sum, decimals)};
}

std::string shared_cell(const BillLine& line, int decimals) {
  std::string text = grouped_decimal(to_kwh(line.shared_millijoules), decimals);
  if (line.standard_error_joules) {
    constexpr double kJoulesPerKwh = 3.6e6;
    text += fmt::format(" <span class=\"error\">\u00b1\u00a0{}</span>",
                        grouped_decimal(*line.standard_error_joules / kJoulesPerKwh, decimals));
  }
  return text;
}

std::vector<Column> columns_of(const Statement& statement) {
  const int decimals = decimals_for(to_kwh(statement.meter_millijoules));
  const auto energy = [&](const char* title, auto value, std::optional<int64_t> total = std::nullopt) {
    int64_t sum = 0;
    for (const BillLine& line : statement.lines) sum += value(line);
    return Column{title, "kWh",
                  [value, decimals](const BillLine& line) { return grouped_decimal(to_kwh(value(line)), decimals); },
                  grouped_decimal(to_kwh(total.value_or(sum)), decimals)};
  };
  const bool spread = statement.spread != Spread::kKeep;
  std::vector<Column> columns;
  columns.push_back(energy("Measured", [](const BillLine& line) { return line.alone_millijoules; }));
  columns.push_back(energy("Estimated", [](const BillLine& line) { return line.shared_millijoules; }));
  columns.back().unit = "kWh, \u00b1 standard error";
  columns.back().cell = [decimals](const BillLine& line) { return shared_cell(line, decimals); };
  columns.push_back(energy(
      "Together", [](const BillLine& line) { return line.own_millijoules(); },
      spread ? std::nullopt : std::optional(statement.meter_millijoules)));
  if (spread) {
    columns.push_back(energy("Part of nobody\u2019s", [](const BillLine& line) { return line.spread_millijoules; }));
    columns.push_back(energy(
        "Charged", [](const BillLine& line) { return line.charged_millijoules(); }, statement.meter_millijoules));
  }
  columns.push_back(hours_column(statement, "GPU work", &BillLine::gpu_hours));
  columns.push_back(hours_column(statement, "GPU allocated", &BillLine::allocated_gpu_hours));
  columns.push_back(hours_column(statement, "of it unused", &BillLine::unused_gpu_hours));
  const bool by_hour = !statement.prices.per_gpu_hour.empty();
  if (by_hour && statement.prices.per_kwh != 0) {
    columns.push_back(money_column(statement, "Energy", [](const BillLine& line) { return line.energy_cost; }));
    columns.push_back(money_column(statement, "GPU hours", [](const BillLine& line) { return line.gpu_hour_cost; }));
  }
  if (has_cost(statement))
    columns.push_back(money_column(statement, "Cost", [](const BillLine& line) { return line.cost(); }));
  if (statement.has_co2e) {
    const double sum = total_of(statement, [](const BillLine& line) { return line.co2e_grams; }) / 1000;
    const int places = decimals_for(sum);
    columns.push_back({"CO\u2082e", "kg",
                       [places](const BillLine& line) { return grouped_decimal(line.co2e_grams / 1000, places); },
                       grouped_decimal(sum, places)});
  }
  return columns;
}

std::string table(const Statement& statement) {
  const std::vector<Column> columns = columns_of(statement);
  std::string out =
      fmt::format("<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">{}</th>", html_name(statement.by));
  for (const Column& column : columns)
    out += fmt::format("<th scope=\"col\">{}<small>{}</small></th>", column.title, html_name(column.unit));
  out += "</tr></thead>\n<tbody>\n";
  for (const BillLine& line : statement.lines) {
    out += fmt::format("<tr class=\"{}\"><th scope=\"row\"><bdi>{}</bdi></th>", kind_name(line.kind),
                       html_name(line_name(line)));
    for (const Column& column : columns) out += "<td>" + column.cell(line) + "</td>";
    out += "</tr>\n";
  }
  out += "</tbody>\n<tfoot><tr><th scope=\"row\">The meter: the GPUs\u2019 energy counters</th>";
  for (const Column& column : columns) out += "<td>" + column.total + "</td>";
  return out + "</tr></tfoot>\n</table></div>\n";
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
  figure("Energy of the GPUs", grouped_decimal(meter, decimals_for(meter)) + " kWh");
  const double nobody = total_of(statement, [](const BillLine& line) {
    return line.kind == LineKind::kNobody ? to_kwh(line.own_millijoules()) : 0.0;
  });
  if (meter > 0) figure("of it nobody\u2019s", grouped_decimal(100 * nobody / meter, 1) + " %");
  figure("GPU hours with readings", grouped_decimal(statement.meter_gpu_hours, 1));
  if (has_cost(statement)) {
    const double cost = total_of(statement, [](const BillLine& line) { return line.cost(); });
    figure("Cost", grouped_decimal(cost, cost >= 1 ? 2 : 6) + " " + html_name(statement.prices.currency));
  }
  if (statement.has_co2e) {
    const double grams = total_of(statement, [](const BillLine& line) { return line.co2e_grams; });
    figure("CO\u2082e", grouped_decimal(grams / 1000, decimals_for(grams / 1000)) + " kg");
  }
  return out + "</dl>\n";
}

std::string price_remark(const Statement& statement) {
  const BillPrices& prices = statement.prices;
  std::string out = "<p class=\"remark\">";
  if (prices.per_kwh != 0)
    out += fmt::format("Energy costs {} {} per kWh. ", plain_decimal(prices.per_kwh), html_name(prices.currency));
  for (const auto& [model, price] : prices.per_gpu_hour)
    out += fmt::format("An hour of a GPU {} costs {} {}. ", html_name(model), plain_decimal(price),
                       html_name(prices.currency));
  if (!prices.per_gpu_hour.empty())
    out += "GPU hours are paid as allocated where the allocation is known, else as worked. ";
  if (!has_cost(statement)) out += "No price was given, so there is no cost. ";
  out += fmt::format("Energy is measured at the GPUs; cost and CO\u2082e count {} times as much (PUE). ",
                     plain_decimal(prices.pue));
  if (statement.has_co2e && prices.co2e_grams_per_kwh)
    out += fmt::format("A kWh is counted as {} g of CO\u2082e. ", plain_decimal(*prices.co2e_grams_per_kwh));
  if (statement.spread != Spread::kKeep)
    out += fmt::format("What belongs to nobody or to an unknown owner is spread over the others by {}. ",
                       statement.spread == Spread::kByUse ? "their use" : "their allocation");
  return out + "Numbers are rounded for this page; the CSV has all digits.</p>\n";
}

constexpr const char* kEstimateRemark =
    "<p class=\"remark\">While one process is alone on a GPU, its energy is <b>measured</b> by the GPU\u2019s counter. "
    "While several share a GPU, the measured energy of that GPU is divided among them by a model of how long each "
    "worked "
    "and how much power its work takes: this part is <b>estimated</b>, and \u00b1 is one standard error of it. Only "
    "the "
    "division is estimated, never the sum: all lines together are the GPUs\u2019 energy counters. What a GPU used "
    "while "
    "nobody worked, and what nobody could be found for, is listed as nobody\u2019s with its reason.</p>\n";

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
  out += incomplete_box(statement);
  out += key_figures(statement);
  out += table(statement);
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
