// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/units.h"

namespace gpuledger::expose {

// Integers of small units are printed as decimals without a double in between and without an exponent,
// so that the printed books balance exactly.
void append_number(std::string& out, Energy value);       // joules
void append_number(std::string& out, Power value);        // watts
void append_number(std::string& out, Nanoseconds value);  // seconds
void append_number(std::string& out, Bytes value);
struct Thousandths {
  int64_t count = 0;
};
void append_number(std::string& out, Thousandths value);
// Another exporter's number, as text.
struct WrittenNumber {
  std::string_view text;
};
inline void append_number(std::string& out, WrittenNumber value) {
  out += value.text;
}
void append_number(std::string& out, std::same_as<bool> auto yes) {  // not for pointers
  out += yes ? '1' : '0';
}
void append_number(std::string& out, uint64_t value);
void append_number(std::string& out, double value);  // shortest exact form; must be finite

// A bucket's bound in OpenMetrics' form ("1.0", not "1"), in both formats: a scraper that changes the
// format must get the same series.
void append_bound(std::string& out, double value);

// 0.07 * 100 is 7.000000000000001; a percentage is rounded to a millionth.
double percent_of(double ratio);
inline std::optional<double> percent_of(const std::optional<Ratio>& ratio) {
  return ratio ? std::optional(percent_of(ratio->value)) : std::nullopt;
}

// The books are in microjoules: smaller digits of an error are noise. Errors that cancel leave 2e-11.
double whole_microjoules(double joules);

}  // namespace gpuledger::expose
