// SPDX-License-Identifier: Apache-2.0
#include "expose/json_text.h"

#include <charconv>
#include <cmath>

#include "base/quote.h"
#include "expose/numbers.h"

namespace gpuledger::expose {

void JsonText::value(bool yes) {
  separate();
  text_ += yes ? "true" : "false";
}

// Always with a decimal point (5.0), so that typed readers do not take a whole number for an integer.
void JsonText::value(double number) {
  separate();
  if (!std::isfinite(number)) {
    text_ += "null";
    return;
  }
  const double magnitude = std::fabs(number);
  const bool common = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e15);
  char digits[40];
  const auto form = common ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(digits, digits + sizeof digits, number, form).ptr;
  const std::string_view written(digits, static_cast<size_t>(end - digits));
  text_ += written;
  if (common && written.find('.') == std::string_view::npos) text_ += ".0";
}

void JsonText::value(Energy energy) {
  separate();
  const size_t start = text_.size();
  append_number(text_, energy);
  if (text_.find('.', start) == std::string::npos) text_ += ".0";
}

void JsonText::value(std::string_view text) {
  separate();
  append_quoted(text_, text);
}

}  // namespace gpuledger::expose
