// SPDX-License-Identifier: Apache-2.0
#include "expose/numbers.h"

#include <charconv>
#include <cmath>
#include <string_view>

namespace gpuledger::expose {
namespace {

constexpr size_t kLongest = 32;  // of any number std::to_chars makes here

void append_decimal(std::string& out, int64_t value, int digits) {
  uint64_t magnitude = static_cast<uint64_t>(value);
  if (value < 0) {
    out += '-';
    magnitude = 0 - magnitude;
  }
  uint64_t scale = 1;
  for (int i = 0; i < digits; ++i) scale *= 10;
  append_number(out, magnitude / scale);
  uint64_t rest = magnitude % scale;
  if (rest == 0) return;
  out += '.';
  while (rest != 0) {
    scale /= 10;
    out += static_cast<char>('0' + rest / scale);
    rest %= scale;
  }
}

}  // namespace

void append_number(std::string& out, Energy value) {
  append_decimal(out, value.microjoules(), 6);
}

void append_number(std::string& out, Power value) {
  append_decimal(out, value.milliwatts(), 3);
}

void append_number(std::string& out, Nanoseconds value) {
  append_decimal(out, value.count(), 9);
}

void append_number(std::string& out, Thousandths value) {
  append_decimal(out, value.count, 3);
}

void append_number(std::string& out, Bytes value) {
  append_number(out, value.count);
}

void append_number(std::string& out, uint64_t value) {
  char text[kLongest];
  const auto end = std::to_chars(text, text + kLongest, value).ptr;
  out.append(text, end);
}

// Shortest exact digits, without an exponent in the usual range: by default to_chars writes 1700000000 as
// 1.7e+09.
void append_number(std::string& out, double value) {
  char text[kLongest];
  const double magnitude = std::fabs(value);
  const bool common = magnitude == 0 || (magnitude >= 1e-6 && magnitude < 1e15);
  const auto end = common ? std::to_chars(text, text + kLongest, value, std::chars_format::fixed).ptr
                          : std::to_chars(text, text + kLongest, value).ptr;
  out.append(text, end);
}

void append_bound(std::string& out, double value) {
  const size_t start = out.size();
  append_number(out, value);
  if (std::string_view(out).substr(start).find_first_of(".e") == std::string_view::npos) out += ".0";
}

double percent_of(double ratio) {
  return std::round(ratio * 1e8) / 1e6;
}

double whole_microjoules(double joules) {
  return std::round(joules * 1e6) / 1e6;
}

}  // namespace gpuledger::expose
