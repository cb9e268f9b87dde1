// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuledger::app::top {

enum class Style { kPlain, kBold, kDim, kTitle, kSorted, kGood, kMemory, kWarn, kBad };

struct Span {
  std::string text;
  Style style = Style::kPlain;
};
using Line = std::vector<Span>;

// Columns on the screen: 2 for wide characters. The text must be clean.
size_t columns_of(std::string_view text);

// Exactly this many columns, cut or padded. Characters that could do more than fill their column are removed.
std::string left(std::string_view text, size_t columns);
// The same, but a text that is too long loses its middle: names of pods differ at the end.
std::string both_ends(std::string_view text, size_t columns);
// A number is never cut, because that would change it: one that is too long is shown as ####.
std::string right(std::string_view text, size_t columns);
// Clean, and not longer than the columns.
std::string cut(std::string_view text, size_t columns);

Line cut_line(const Line& line, size_t columns);
// Bytes for the terminal. Without colours no escape sequence at all; dimmed: the whole line.
std::string write_line(const Line& line, bool colours, bool dimmed);

// "[||||    ]", with the ratio between 0 and 1.
std::string bar(double ratio, size_t columns);

// For cells: "-" if unknown.
std::string memory_text(const std::optional<double>& bytes);
std::string energy_text(double joules);
std::string percent_text(const std::optional<double>& ratio);
std::string watts_text(double watts);
std::string time_text(double seconds);

}  // namespace gpuledger::app::top
