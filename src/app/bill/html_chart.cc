// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "app/bill/amounts.h"
#include "app/bill/html_parts.h"
#include "app/bill/line_words.h"
#include "app/bill/rounded.h"
#include "base/html_text.h"
#include "base/quote.h"
#include "base/utf8.h"

namespace gpuledger::app {
namespace {

constexpr size_t kMostOwners = 20;  // one page of paper
constexpr int kRow = 24, kBarHeight = 15, kLabelWidth = 240, kBarWidth = 440, kWidth = 820;
constexpr double kFontSize = 13;  // as in html_style.cc

struct Bar {
  std::string label;
  int64_t alone = 0, shared = 0;
  bool nobody = false;
};

// At most, in parts of the font's size. The browser chooses the font: DejaVu Sans is the widest of the usual ones.
double width_of(std::string_view character) {
  constexpr std::string_view kNarrow = "fijlrt.,:;'!|()[]/- ", kWide = "mwMW@%";
  if (character.size() > 1) return 1;  // other scripts
  const char c = character.front();
  if (kNarrow.find(c) != kNarrow.npos) return 0.42;
  if (kWide.find(c) != kWide.npos) return 1;
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? 0.65 : 0.85;
}

// As much of it as fits left of the bars.
std::string shortened(const std::string& text) {
  constexpr double kRoom = (kLabelWidth - 8) / kFontSize, kDots = 1;
  double width = 0;
  size_t end = 0, fits = 0;
  while (end < text.size()) {
    const size_t length = decode_utf8(std::string_view(text).substr(end)).length;
    width += width_of(std::string_view(text).substr(end, length));
    if (width > kRoom) return text.substr(0, fits) + "\u2026";
    end += length;
    if (width + kDots <= kRoom) fits = end;
  }
  return text;
}

// As html_name, but not yet escaped: an escape must not be cut.
std::string shown(std::string_view name) {
  return clean_text(name, name.size()) == name ? std::string(name) : in_quotes(name);
}

std::vector<Bar> bars_of(const Statement& statement) {
  std::vector<Bar> owners, nobody;
  for (const BillLine& line : statement.lines) {
    const bool is_nobody = line.kind == LineKind::kNobody;
    (is_nobody ? nobody : owners)
        .push_back({line_name(line), line.alone_millijoules, line.shared_millijoules, is_nobody});
  }
  if (owners.size() > kMostOwners) {
    std::stable_sort(owners.begin(), owners.end(),
                     [](const Bar& a, const Bar& b) { return a.alone + a.shared > b.alone + b.shared; });
    Bar others{fmt::format("{} others", owners.size() - kMostOwners + 1)};
    for (size_t i = kMostOwners - 1; i < owners.size(); ++i)
      others.alone += owners[i].alone, others.shared += owners[i].shared;
    owners.resize(kMostOwners - 1);
    owners.push_back(others);
  }
  owners.insert(owners.end(), nobody.begin(), nobody.end());
  return owners;
}

std::string rectangle(const char* kind, double x, int y, double width) {
  if (width <= 0) return {};
  return fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/>", kind, x, y, width,
                     kBarHeight);
}

std::string legend(int y) {
  std::string out;
  int x = kLabelWidth;
  for (const auto& [kind, text] : {std::pair("alone", "measured (alone on the GPU)"),
                                   std::pair("shared", "estimated (GPU shared)"), std::pair("nobody", "nobody's")}) {
    out += fmt::format(
        "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"24\" height=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text>\n", kind, x,
        y, kBarHeight, x + 30, y + 12, text);
    x += 50 + 7 * static_cast<int>(std::string_view(text).size());
  }
  return out;
}

}  // namespace

std::string bill_chart(const Statement& statement) {
  const std::vector<Bar> bars = bars_of(statement);
  int64_t largest = 1;
  for (const Bar& bar : bars) largest = std::max(largest, bar.alone + bar.shared);
  const int decimals = digits_of(statement).kwh;
  const double scale = kBarWidth / static_cast<double>(largest);
  const int height = kRow * (static_cast<int>(bars.size()) + 1) + 8;
  std::string out = fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"chart-title chart-text\">\n"
      "<title id=\"chart-title\">Energy by line, in kWh</title>\n<desc id=\"chart-text\">Horizontal bars. {} lines; "
      "the "
      "table has the same numbers.</desc>\n<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" "
      "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><line class=\"hatch\" x1=\"0\" y1=\"0\" "
      "x2=\"0\" y2=\"6\"/></pattern></defs>\n",
      kWidth, height, bars.size());
  out += legend(2);
  int y = kRow + 4;
  for (const Bar& bar : bars) {
    const double alone = scale * static_cast<double>(std::max<int64_t>(bar.alone, 0));
    const double shared = scale * static_cast<double>(std::max<int64_t>(bar.shared, 0));
    const std::string total = grouped_decimal(to_kwh(bar.alone + bar.shared), decimals);
    const std::string parts =
        bar.nobody ? std::string("nobody's")
                   : fmt::format("{} measured, {} estimated", grouped_decimal(to_kwh(bar.alone), decimals),
                                 grouped_decimal(to_kwh(bar.shared), decimals));
    out += fmt::format("<g><title>{}: {} kWh, {}</title>", html_name(bar.label), total, parts);
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", kLabelWidth - 8, y + 12,
                       escape_html(shortened(shown(bar.label))));
    if (bar.nobody) {
      out += rectangle("nobody", kLabelWidth, y, alone + shared);
    } else {
      out += rectangle("alone", kLabelWidth, y, alone) + rectangle("shared", kLabelWidth + alone, y, shared);
    }
    out += fmt::format("<text class=\"value\" x=\"{:.1f}\" y=\"{}\">{}</text></g>\n", kLabelWidth + alone + shared + 6,
                       y + 12, total);
    y += kRow;
  }
  out += fmt::format("<line class=\"axis\" x1=\"{0}\" y1=\"{1}\" x2=\"{0}\" y2=\"{2}\"/>\n</svg>\n", kLabelWidth, kRow,
                     height);
  return out;
}

std::string html_name(std::string_view name) {
  return escape_html(shown(name));
}

}  // namespace gpuledger::app
