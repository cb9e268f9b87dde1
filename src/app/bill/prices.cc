// SPDX-License-Identifier: Apache-2.0
#include "app/bill/prices.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

#include "app/bill/amounts.h"
#include "app/config/config_bill_values.h"
#include "base/quote.h"

namespace gpuledger::app {
namespace {

using std::chrono::sys_seconds;

bool holds(const PriceRow& row, sys_seconds time) {
  return (!row.from || *row.from <= time) && (!row.to || time < *row.to);
}

bool say_the_same(const PriceRow& a, const PriceRow& b) {
  if (a.cluster != b.cluster) return false;
  if ((a.to && b.from && *a.to <= *b.from) || (b.to && a.from && *b.to <= *a.from)) return false;
  const bool models = std::any_of(a.per_gpu_hour.begin(), a.per_gpu_hour.end(),
                                  [&](const auto& one) { return b.per_gpu_hour.contains(one.first); });
  return models || (a.per_kwh && b.per_kwh) || (a.pue && b.pue);
}

Error wrong(const YAML::Node& where, const std::string& what) {
  return {Code::kMalformed, fmt::format("line {}: {}", where.Mark().line + 1, clean_text(what, 200))};
}

template <typename T, typename Parse>
Status read_value(const YAML::Node& node, const std::string& key, Parse parse, T& into) {
  if (!node.IsScalar()) return wrong(node, key + " must be one value");
  auto value = parse(std::string_view(node.Scalar()));
  if (!value.ok()) return wrong(node, key + ": " + value.error().message);
  into = *std::move(value);
  return ok_status();
}

Status read_models(const YAML::Node& map, PriceRow& row) {
  if (!map.IsMap()) return wrong(map, "per_gpu_hour must be a map of models and prices");
  for (const auto& entry : map) {
    const std::string model = entry.first.Scalar();
    if (row.per_gpu_hour.contains(model)) return wrong(entry.first, model + " is given twice");
    GL_TRY_STATUS(read_value(entry.second, model, parse_amount, row.per_gpu_hour[model]));
  }
  return ok_status();
}

Result<PriceRow> read_row(const YAML::Node& map) {
  if (!map.IsMap()) return wrong(map, "a row must be a map");
  PriceRow row;
  std::set<std::string> seen;
  for (const auto& entry : map) {
    const std::string key = entry.first.Scalar();
    const YAML::Node& value = entry.second;
    if (!seen.insert(key).second) return wrong(entry.first, key + " is given twice");
    if (key == "from") {
      GL_TRY_STATUS(read_value(value, key, parse_time, row.from));
    } else if (key == "to") {
      GL_TRY_STATUS(read_value(value, key, parse_time, row.to));
    } else if (key == "cluster") {
      GL_TRY_STATUS(read_value(
          value, key, [](std::string_view text) { return Result<std::string>(std::string(text)); }, row.cluster));
    } else if (key == "per_kwh") {
      GL_TRY_STATUS(read_value(value, key, parse_amount, row.per_kwh));
    } else if (key == "pue") {
      GL_TRY_STATUS(read_value(value, key, parse_pue, row.pue));
    } else if (key == "per_gpu_hour") {
      GL_TRY_STATUS(read_models(value, row));
    } else {
      return wrong(entry.first, in_quotes(key) + " is not one of from, to, cluster, per_kwh, pue and per_gpu_hour");
    }
  }
  if (!row.per_kwh && !row.pue && row.per_gpu_hour.empty()) return wrong(map, "a row without a price");
  if (row.from && row.to && *row.to <= *row.from) return wrong(map, "to is not after from");
  return row;
}

Result<std::vector<PriceRow>> read_rows(const YAML::Node& list) {
  constexpr size_t kMostRows = 1000;
  if (!list.IsSequence() || list.size() == 0) return wrong(list, "the file must be a list of rows");
  if (list.size() > kMostRows) return wrong(list, fmt::format("more than {} rows", kMostRows));
  std::vector<PriceRow> rows;
  for (const YAML::Node& one : list) {
    GL_TRY(row, read_row(one));
    if (std::any_of(rows.begin(), rows.end(), [&](const PriceRow& other) { return say_the_same(other, row); })) {
      return wrong(one, "another row has a price for the same cluster and time");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

BillPrices BillPrices::at(const std::string& cluster, sys_seconds time) const {
  BillPrices prices{currency, per_kwh, per_gpu_hour, pue, co2e_grams_per_kwh};
  for (const std::string& of : {std::string(), cluster}) {
    for (const PriceRow& row : rows) {
      if (row.cluster != of || !holds(row, time)) continue;
      prices.per_kwh = row.per_kwh.value_or(prices.per_kwh);
      prices.pue = row.pue.value_or(prices.pue);
      for (const auto& [model, price] : row.per_gpu_hour) prices.per_gpu_hour[model] = price;
    }
  }
  return prices;
}

std::vector<sys_seconds> BillPrices::changes(sys_seconds begin, sys_seconds end) const {
  std::set<sys_seconds> times;
  for (const PriceRow& row : rows) {
    for (const auto& time : {row.from, row.to}) {
      if (time && *time > begin && *time < end) times.insert(*time);
    }
  }
  return {times.begin(), times.end()};
}

bool BillPrices::has_kwh_price() const {
  return per_kwh > 0 || std::any_of(rows.begin(), rows.end(), [](const PriceRow& row) { return row.per_kwh > 0.0; });
}

std::map<std::string, double> BillPrices::models() const {
  std::map<std::string, double> all = per_gpu_hour;
  for (const PriceRow& row : rows) all.insert(row.per_gpu_hour.begin(), row.per_gpu_hour.end());
  return all;
}

std::vector<std::string> BillPrices::words() const {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& when, std::optional<double> kwh, std::optional<double> factor,
                       const std::map<std::string, double>& hours) {
    std::string text;
    const auto more = [&](const std::string& words) { text += (text.empty() ? "" : "; ") + words; };
    if (kwh) more(fmt::format("{} {} per kWh{}", *kwh, currency, factor ? fmt::format(" x PUE {}", *factor) : ""));
    if (!kwh && factor) more(fmt::format("PUE {}", *factor));
    for (const auto& [model, price] : hours) {
      more(fmt::format("{} {} per GPU hour of {}", price, currency, clean_text(model, 300)));
    }
    if (!text.empty()) lines.push_back(when + text);
  };
  const bool has_pue = per_kwh > 0 || (!rows.empty() && pue != 1);
  add("", per_kwh > 0 ? std::optional(per_kwh) : std::nullopt, has_pue ? std::optional(pue) : std::nullopt,
      per_gpu_hour);
  for (const PriceRow& row : rows) {
    std::string when;
    if (row.from) when += "from " + time_text(*row.from) + " ";
    if (row.to) when += "to " + time_text(*row.to) + " ";
    if (!row.cluster.empty()) when += "in " + clean_text(row.cluster, 300) + " ";
    if (!when.empty()) when.back() = ':', when += ' ';
    add(when, row.per_kwh, row.pue, row.per_gpu_hour);
  }
  return lines;
}

Result<std::vector<PriceRow>> parse_price_list(std::string_view text) {
  if (text.find('\0') != text.npos) return Error{Code::kMalformed, "NUL bytes; the file is no text"};
  try {
    return read_rows(YAML::Load(std::string(text)));
  } catch (const YAML::Exception& problem) {
    return Error{Code::kMalformed, fmt::format("line {}: {}", problem.mark.line + 1, clean_text(problem.msg, 200))};
  }
}

}  // namespace gpuledger::app
