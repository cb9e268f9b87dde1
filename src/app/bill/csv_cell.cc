// SPDX-License-Identifier: Apache-2.0
#include "app/bill/csv_cell.h"

#include <cstdint>
#include <string_view>

#include "base/quote.h"
#include "base/utf8.h"

namespace gpuledger::app {
namespace {

// The wide forms count too: spreadsheets in East Asian languages take them for the narrow ones.
constexpr std::u32string_view kFormulaStarts = U"=+-@\uff1d\uff0b\uff0d\uff20";

// White space and what has no width, which spreadsheets skip.
bool is_skipped(uint32_t code) {
  return code == ' ' || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200d) || code == 0x202f ||
         code == 0x205f || code == 0x2060 || code == 0x3000 || code == 0xfeff;
}

bool looks_like_formula(std::string_view cell) {
  while (!cell.empty()) {
    const Utf8Character c = decode_utf8(cell);
    if (!is_skipped(c.code)) return kFormulaStarts.find(static_cast<char32_t>(c.code)) != kFormulaStarts.npos;
    cell.remove_prefix(c.length);
  }
  return false;
}

}  // namespace

std::string csv_text(std::string_view text) {
  std::string cell = clean_text(text, text.size() * 3);  // a bad byte becomes three
  if (looks_like_formula(cell)) cell.insert(0, 1, '\'');
  if (cell.find_first_of(",\"") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

}  // namespace gpuledger::app
