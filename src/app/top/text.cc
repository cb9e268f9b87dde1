// SPDX-License-Identifier: Apache-2.0
#include "app/top/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/quote.h"
#include "base/utf8.h"

namespace gpuledger::app::top {
namespace {

constexpr size_t kLongestText = 400;

struct Range {
  uint32_t first;
  uint32_t last;
};

// Two columns wide in every terminal: East Asian scripts and the common emoji.
constexpr Range kWide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xa960, 0xa97f},
                           {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff01, 0xff60},
                           {0xffe0, 0xffe6},   {0x1f300, 0x1f5ff}, {0x1f600, 0x1f64f}, {0x1f680, 0x1f6ff},
                           {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
// Characters without a width, or with one that terminals disagree about: combining marks, joiners, variation selectors,
// modifiers, tags, symbols that are an emoji in some fonts, private use. One of them would shift the columns, and a
// hundred could cover the lines around.
constexpr Range kUncertain[] = {
    {0xad, 0xad},       {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5c7},     {0x610, 0x61a},     {0x64b, 0x65f},
    {0x670, 0x670},     {0x6d6, 0x6ed},   {0x1160, 0x11ff}, {0x180b, 0x180f},   {0x1ab0, 0x1aff},   {0x1dc0, 0x1dff},
    {0x200b, 0x200f},   {0x202a, 0x202e}, {0x2060, 0x206f}, {0x20d0, 0x20ff},   {0x231a, 0x23ff},   {0x25fd, 0x27bf},
    {0x2b00, 0x2bff},   {0x302a, 0x302f}, {0x3099, 0x309a}, {0xd7b0, 0xd7ff},   {0xe000, 0xf8ff},   {0xfe00, 0xfe0f},
    {0xfe20, 0xfe2f},   {0xfeff, 0xfeff}, {0xfff0, 0xfffc}, {0x1f000, 0x1f2ff}, {0x1f3fb, 0x1f3ff}, {0x1fa70, 0x1faff},
    {0xe0000, 0x10ffff}};

template <size_t kCount>
bool is_in(const Range (&ranges)[kCount], uint32_t code) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [&](const Range& range) { return code >= range.first && code <= range.last; });
}

size_t width_of(uint32_t code) {
  return is_in(kWide, code) ? 2 : 1;
}

std::string clean(std::string_view text) {
  std::string out;
  std::string rest = clean_text(text, kLongestText);
  for (std::string_view left = rest; !left.empty();) {
    const Utf8Character c = decode_utf8(left);
    if (is_in(kUncertain, c.code)) {
      out += '?';
    } else {
      out += left.substr(0, c.length);
    }
    left.remove_prefix(c.length);
  }
  return out;
}

// The bytes of the first characters that fit.
size_t bytes_within(std::string_view text, size_t columns) {
  size_t bytes = 0;
  while (bytes < text.size()) {
    const Utf8Character c = decode_utf8(text.substr(bytes));
    if (width_of(c.code) > columns) break;
    columns -= width_of(c.code);
    bytes += c.length;
  }
  return bytes;
}

std::string scaled(double value, double step, const std::array<const char*, 6>& units) {
  size_t i = 0;
  while (value >= step && i + 1 < units.size()) {
    value /= step;
    ++i;
  }
  return fmt::format("{:.{}f}{}", value, i == 0 || value >= 100 ? 0 : 1, units[i]);
}

// The numbers of SGR.
std::string_view code_of(Style style) {
  switch (style) {
    case Style::kPlain: return "";
    case Style::kBold: return "1";
    case Style::kDim: return "2";
    case Style::kTitle: return "7";
    case Style::kSorted: return "1;7";
    case Style::kGood: return "32";
    case Style::kMemory: return "36";
    case Style::kWarn: return "33";
    case Style::kBad: return "31";
  }
  return "";
}

}  // namespace

size_t columns_of(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    const Utf8Character c = decode_utf8(text);
    columns += width_of(c.code);
    text.remove_prefix(c.length);
  }
  return columns;
}

std::string cut(std::string_view text, size_t columns) {
  std::string out = clean(text);
  out.resize(bytes_within(out, columns));
  return out;
}

std::string left(std::string_view text, size_t columns) {
  std::string out = cut(text, columns);
  out.append(columns - columns_of(out), ' ');
  return out;
}

std::string both_ends(std::string_view text, size_t columns) {
  const std::string all = clean(text);
  if (columns_of(all) <= columns || columns < 3) return left(all, columns);
  const std::string head = all.substr(0, bytes_within(all, columns / 2)) + "~";
  const size_t rest = columns - columns_of(head);
  std::string_view tail = all;
  while (columns_of(tail) > rest) tail.remove_prefix(decode_utf8(tail).length);
  return left(head + std::string(tail), columns);
}

std::string right(std::string_view text, size_t columns) {
  const std::string out = clean(text);
  const size_t taken = columns_of(out);
  return taken > columns ? std::string(columns, '#') : std::string(columns - taken, ' ') + out;
}

Line cut_line(const Line& line, size_t columns) {
  Line out;
  for (const Span& span : line) {
    const size_t bytes = bytes_within(span.text, columns);
    out.push_back({span.text.substr(0, bytes), span.style});
    columns -= columns_of(out.back().text);
    if (bytes < span.text.size()) break;
  }
  while (!out.empty()) {  // blanks at the end only cost bytes
    std::string& last = out.back().text;
    const bool visible = out.back().style == Style::kTitle || out.back().style == Style::kSorted;
    if (!visible) last.resize(last.find_last_not_of(' ') + 1);
    if (!last.empty()) break;
    out.pop_back();
  }
  return out;
}

std::string write_line(const Line& line, bool colours, bool dimmed) {
  std::string out;
  std::string_view set;
  const auto change = [&](std::string_view code) {
    if (!colours || code == set) return;
    if (!set.empty()) out += "\x1b[0m";
    if (!code.empty()) out.append("\x1b[").append(code).append("m");
    set = code;
  };
  for (const Span& span : line) {
    change(dimmed ? code_of(Style::kDim) : code_of(span.style));
    out += span.text;
  }
  change("");
  return out;
}

std::string bar(double ratio, size_t columns) {
  if (columns < 3) return std::string(columns, ' ');
  const size_t inside = columns - 2;
  const double part = std::isfinite(ratio) ? std::clamp(ratio, 0.0, 1.0) : 0;
  const auto full = static_cast<size_t>(std::lround(part * static_cast<double>(inside)));
  return "[" + std::string(full, '|') + std::string(inside - full, ' ') + "]";
}

std::string memory_text(const std::optional<double>& bytes) {
  return bytes ? scaled(*bytes, 1024, {"B", "K", "M", "G", "T", "P"}) : "-";
}

std::string energy_text(double joules) {
  return scaled(joules, 1000, {"J", "kJ", "MJ", "GJ", "TJ", "PJ"});
}

std::string percent_text(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.0f}%", 100 * *ratio) : "-";
}

std::string watts_text(double watts) {
  return fmt::format("{:.1f}", watts);
}

std::string time_text(double seconds) {
  constexpr double kLongest = 100 * 365.25 * 86400;
  if (!(seconds >= 0 && seconds < kLongest)) return "?";
  const auto whole = static_cast<long>(seconds);
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
  return fmt::format("{}d{:02}h", whole / 86400, whole / 3600 % 24);
}

}  // namespace gpuledger::app::top
