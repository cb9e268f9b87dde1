// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

// The settings of the command bill. Messages as in config_values.h.
namespace gpuledger::app {

// "2026-10".
Result<std::chrono::year_month> parse_month(std::string_view text);

// "2026-10-01", "2026-10-01T12:30:00Z", "2026-10-01T12:30:00+02:00". A date begins at 00:00 UTC.
Result<std::chrono::sys_seconds> parse_time(std::string_view text);

// A price or grams: 0 or more.
Result<double> parse_amount(std::string_view text);

// 1 to 10.
Result<double> parse_pue(std::string_view text);

// "NVIDIA H200=2.5".
Result<std::pair<std::string, double>> parse_gpu_hour_price(std::string_view text);

// Three letters.
Result<std::string> parse_currency(std::string_view text);

// Label matchers of PromQL as they stand in a selector: cluster="east",node=~"a.*".
Result<std::string> parse_matchers(std::string_view text);

// A word that a bill can be grouped by, or label:NAME.
Status check_bill_by(std::string_view text);

}  // namespace gpuledger::app
