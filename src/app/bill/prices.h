// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuledger::app {

// Prices from one time to another. What a row does not say, another row or the constant prices do.
struct PriceRow {
  std::optional<std::chrono::sys_seconds> from;  // empty: since ever
  std::optional<std::chrono::sys_seconds> to;    // not included; empty: for ever
  std::string cluster;                           // empty: for all of which no row of their own says it
  std::optional<double> per_kwh;
  std::optional<double> pue;
  std::map<std::string, double> per_gpu_hour;  // by model
};

struct BillPrices {
  std::string currency = "EUR";
  double per_kwh = 0;
  std::map<std::string, double> per_gpu_hour;  // by model
  double pue = 1;
  std::optional<double> co2e_grams_per_kwh;  // a constant; empty if it comes from a series or is not asked for
  std::vector<PriceRow> rows = {};           // of a price list; the numbers above are for what it does not say

  // Without rows: those of one cluster at one time.
  BillPrices at(const std::string& cluster, std::chrono::sys_seconds time) const;
  // When they change, within a span.
  std::vector<std::chrono::sys_seconds> changes(std::chrono::sys_seconds begin, std::chrono::sys_seconds end) const;
  bool has_kwh_price() const;
  // Every model that has a price at any time.
  std::map<std::string, double> models() const;
  // In words: the constant ones, then each row.
  std::vector<std::string> words() const;
};

// The rows of a --price-list. Two rows must not say the same for one cluster and time.
Result<std::vector<PriceRow>> parse_price_list(std::string_view text);

}  // namespace gpuledger::app
