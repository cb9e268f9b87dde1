// SPDX-License-Identifier: Apache-2.0
#include "app/bill/csv_cell.h"

#include <algorithm>
#include <array>

#include "base/quote.h"

namespace gpuledger::app {
namespace {

// The wide forms count too: spreadsheets in East Asian languages take them for the narrow ones.
constexpr std::array<std::string_view, 8> kFormulaStarts = {"=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"};

}  // namespace

std::string csv_text(std::string_view text) {
  std::string cell = clean_text(text, text.size() * 3);  // a bad byte becomes three
  // Blanks do not hide a formula from every program.
  const std::string_view visible = std::string_view(cell).substr(std::min(cell.find_first_not_of(' '), cell.size()));
  if (std::any_of(kFormulaStarts.begin(), kFormulaStarts.end(),
                  [&](std::string_view start) { return visible.starts_with(start); }))
    cell.insert(0, 1, '\'');
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

}  // namespace gpuledger::app
