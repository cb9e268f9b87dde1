// SPDX-License-Identifier: Apache-2.0
#include "app/top/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "app/top/gpu_lines.h"
#include "app/top/row_lines.h"
#include "app/top/rows.h"

namespace gpuledger::app::top {
namespace {

constexpr size_t kRoomForBlankLines = 16;
constexpr size_t kKeyColumns = 22;

// ", 1214 W", of those that say it; empty: none does.
std::string power_words(const Books& books) {
  double watts = 0;
  size_t known = 0;
  for (const Books::Gpu& gpu : books.gpus) {
    if (!gpu.up || !gpu.watts) continue;
    watts += *gpu.watts;
    ++known;
  }
  if (known == 0) return "";
  const std::string of = known == books.gpus.size() ? "" : fmt::format(" of {} GPU{}", known, known == 1 ? "" : "s");
  return fmt::format(", {:.0f} W{}", watts, of);
}

Line write_title(const Books& books) {
  const auto active = std::count_if(books.processes.begin(), books.processes.end(),
                                    [](const Books::Process& process) { return process.active; });
  constexpr size_t kLongestNode = 64;
  return {{fmt::format("gpu-ledger{}{}: {} GPU{}{}, {} process{}{}", books.node.empty() ? "" : " ",
                       cut(books.node, kLongestNode), books.gpus.size(), books.gpus.size() == 1 ? "" : "s",
                       power_words(books), active, active == 1 ? "" : "es", books.simulated ? ", SIMULATED" : ""),
           Style::kBold}};
}

// What the user chose, so that it can be read without colours.
std::string choices(const View& view) {
  std::string text = fmt::format("by {}{}", sort_column(view.sort).word, view.reverse ? ", reversed" : "");
  if (view.by_owner) text += ", added up by owner";
  if (view.gpu) text += fmt::format(", GPU {}", *view.gpu);
  if (!view.filter.empty() && !view.typing) text += ", filter /" + cut(view.filter, 20);
  return text;
}

std::vector<Line> write_troubles(const Books& books, const Situation& situation, size_t columns) {
  std::vector<Line> lines;
  const auto add = [&](const std::string& text) { lines.push_back({{cut("! " + text, columns), Style::kBad}}); };
  if (!situation.trouble.empty()) add(situation.trouble);
  if (!situation.note.empty()) add(situation.note);
  for (const Books::Trouble& trouble : books.troubles) add(trouble.source + ": " + trouble.reason);
  for (const Books::Gpu& gpu : books.gpus) {
    for (const std::string& trouble : gpu.health) add(fmt::format("GPU {}: ", gpu.index) + trouble);
  }
  return lines;
}

Line write_footer(const View& view, size_t first, size_t shown, size_t all) {
  if (view.typing)
    return {{"filter: "}, {cut(view.filter, 64), Style::kBold}, {"_   (Enter keeps it, Esc removes it)"}};
  const std::string keys = "h help  q quit  / filter  g group  r reverse  tab GPU";
  if (shown == all) return {{keys, Style::kDim}};
  return {{fmt::format("{} to {} of {}   ", shown == 0 ? first : first + 1, first + shown, all)}, {keys, Style::kDim}};
}

std::vector<Line> write_help_lines() {
  std::vector<Line> lines = {{{"Keys of gpu-ledger top", Style::kBold}}, {}};
  for (const KeyHelp& entry : key_help()) {
    lines.push_back({{left(entry.keys, kKeyColumns), Style::kBold}, {std::string(entry.meaning)}});
  }
  lines.emplace_back();
  lines.push_back({{"Watts are the mean since the last look. SHARE is the share of the GPU's time,"}});
  lines.push_back({{"ENERGY all that was booked. +/- is one standard error of the estimated part;"}});
  lines.push_back({{"a narrow screen has ~ before an energy with such an error instead."}});
  lines.push_back({{"uncertain: the error is as large as the watts. -: not known."}});
  lines.push_back({{"Any key goes back."}});
  return lines;
}

Screen finish(Screen screen, Size size) {
  if (size.rows > 0 && screen.lines.size() > size.rows) screen.lines.resize(size.rows);
  for (Line& line : screen.lines) line = cut_line(line, size.columns);
  return screen;
}

class Composer {
 public:
  Composer(const Books& now, const View& view, const Situation& situation, Size size)
      : now_(now), view_(view), situation_(situation), size_(size), live_(size.rows > 0) {}

  Screen write(const std::vector<Row>& rows) {
    add_top();
    const RowLayout layout(size_.columns, view_);
    screen_.lines.push_back(layout.write_head());
    const size_t used = screen_.lines.size() + 1;  // the footer
    const size_t room = !live_ ? rows.size() : size_.rows > used ? size_.rows - used : 0;
    screen_.page = std::max<size_t>(room, 1);
    screen_.offset = std::min(view_.offset, rows.size() > room ? rows.size() - room : 0);
    const size_t end = std::min(rows.size(), screen_.offset + room);
    for (size_t i = screen_.offset; i < end; ++i) screen_.lines.push_back(layout.write_row(rows[i]));
    if (rows.empty() && room > 0) screen_.lines.push_back({{nothing(), Style::kDim}});
    if (live_) add_footer(rows.size(), end);
    return finish(std::move(screen_), size_);
  }

 private:
  void add_top() {
    auto& lines = screen_.lines;
    lines.push_back(write_title(now_));
    std::vector<Line> troubles = write_troubles(now_, situation_, size_.columns);
    const size_t most = !live_ ? troubles.size() : std::max<size_t>(size_.rows / 6, 1);
    if (troubles.size() > most) {
      const size_t hidden = troubles.size() - most + 1;
      troubles.resize(most);
      if (most > 1)
        troubles.back() = {{fmt::format("! and {} more; gpu-ledger doctor lists them", hidden), Style::kBad}};
    }
    screen_.dimmed = !situation_.trouble.empty();
    if (screen_.dimmed) lines.push_back(troubles.front());
    screen_.fresh_lines = lines.size();
    lines.push_back({{cut(situation_.source, size_.columns) + (live_ ? "; " + choices(view_) : ""), Style::kDim}});
    lines.insert(lines.end(), troubles.begin() + (screen_.dimmed ? 1 : 0), troubles.end());
    add_blank();
    // At most about half of the screen, so that processes are seen too.
    const size_t most_gpus =
        !live_ ? std::numeric_limits<size_t>::max() : std::max<size_t>(size_.rows > 6 ? (size_.rows - 6) / 2 : 1, 1);
    for (Line& line : write_gpus(now_, view_, size_.columns, most_gpus, live_)) lines.push_back(std::move(line));
    add_blank();
  }

  void add_blank() {
    if (!live_ || size_.rows >= kRoomForBlankLines) screen_.lines.emplace_back();
  }

  // In the last line of the screen.
  void add_footer(size_t all, size_t end) {
    while (screen_.lines.size() + 1 < size_.rows) screen_.lines.emplace_back();
    const Line footer = write_footer(view_, screen_.offset, end - screen_.offset, all);
    if (screen_.lines.size() < size_.rows) {
      screen_.lines.push_back(footer);
    } else if (view_.typing) {  // a tiny screen shows what is typed and nothing else
      screen_.lines.resize(size_.rows);
      screen_.lines.back() = footer;
    }
  }

  std::string nothing() const {
    return view_.filter.empty() ? "no process" : "no process fits the filter; Esc removes it";
  }

  const Books& now_;
  const View& view_;
  const Situation& situation_;
  const Size size_;
  const bool live_;
  Screen screen_;
};

}  // namespace

Screen write_screen(const Books& now, const Books* before, const View& view, const Situation& situation, Size size) {
  if (view.help) {
    Screen screen;
    screen.lines = write_help_lines();
    screen.offset = view.offset;
    return finish(std::move(screen), size);
  }
  return Composer(now, view, situation, size).write(make_rows(now, before, view));
}

}  // namespace gpuledger::app::top
