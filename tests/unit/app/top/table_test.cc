// SPDX-License-Identifier: Apache-2.0
#include "app/top/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/top/terminal.h"
#include "top_books.h"

namespace gpuledger::app::top {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> lines_of(const Screen& screen) {
  std::vector<std::string> lines;
  for (const Line& line : screen.lines) lines.push_back(write_line(line, false, false));
  return lines;
}

std::string all(const Screen& screen) {
  std::string text;
  for (const std::string& line : lines_of(screen)) text += line + "\n";
  return text;
}

std::string shown(const Books& now, const Books* before, const View& view = {}, Size size = {}) {
  return all(write_screen(now, before, view, {"own books", ""}, size));
}

// The last line: of who draws least.
std::string last(const Books& now, const Books* before) {
  return lines_of(write_screen(now, before, {}, {"own books", ""}, {})).back();
}

TEST(TopTable, WattsAreJoulesOverTheStep) {
  EXPECT_THAT(shown(kNow, &kBefore), HasSubstr(" 13.0 "));
  EXPECT_THAT(shown(kNow, nullptr), Not(HasSubstr("13.0")));
  Books two_seconds = kBefore;
  two_seconds.at -= 1;
  EXPECT_THAT(shown(kNow, &two_seconds), HasSubstr(" 6.5 "));
  Books shared = kNow;
  shared.processes[2].error_joules = shared.processes[2].joules / 10;
  EXPECT_THAT(shown(shared, &kBefore), HasSubstr("±1.3"));
}

TEST(TopTable, AnErrorAsLargeAsTheWattsIsNoNumber) {
  const std::string before = last(kNow, &kBefore);
  Books books = kNow;
  Books::Process& process = books.processes[0];
  process.error_joules = 0.99 * process.joules;
  EXPECT_THAT(last(books, &kBefore), HasSubstr(" 11.0  ±10.9 "));
  for (const double part : {1.0, 1.5}) {
    process.error_joules = part * process.joules;
    const std::string line = last(books, &kBefore);
    EXPECT_THAT(line, HasSubstr(" uncertain "));
    EXPECT_THAT(line, Not(HasSubstr("11.0")));
    EXPECT_EQ(columns_of(line), columns_of(before)) << "the columns stay in line";
  }
  EXPECT_THAT(shown(books, nullptr), Not(HasSubstr("uncertain"))) << "no watts yet at all";
  Books same = books;
  same.at -= 1, same.cycle -= 1;
  EXPECT_THAT(shown(books, &same), Not(HasSubstr("uncertain"))) << "nothing drawn, that is known";
  process.active = false;
  EXPECT_THAT(shown(books, &kBefore), Not(HasSubstr("uncertain")));
}

// 10 kJ alone, which are measured, and 1 kJ shared, which are known to half. The page says the same of this.
TEST(TopTable, TheErrorOfTheWattsIsThatOfTheirSharedPart) {
  const auto books = [](int second, int alone, int shared) {
    const std::string account =
        R"("gpu":0,"gpu_uuid":"GPU-0","owner":"pod","owner_text":"team/a","energy_joules":{"total":)" +
        std::to_string(alone + shared) + R"(,"alone":)" + std::to_string(alone) + R"(,"shared":)" +
        std::to_string(shared) + R"(},"energy_standard_error_joules":500)";
    const auto parsed =
        parse_books(R"({"at":)" + std::to_string(second) + R"(,"cycle":)" + std::to_string(second) +
                    R"(,"gpus":[{"index":0,"uuid":"GPU-0","up":true,"power_watts":300}],"processes":[{)" + account +
                    R"(,"pid":7,"name":"p7","active":true}],"owners":[{)" + account + "}]}");
    EXPECT_TRUE(parsed.ok());
    return parsed.value_or({});
  };
  const Books now = books(8, 10000, 1000);
  const Books shared = books(7, 10000, 700), alone = books(7, 9700, 1000), both = books(7, 9800, 900);
  View by_owner;
  by_owner.by_owner = true;
  for (const View& view : {View(), by_owner}) {
    EXPECT_THAT(shown(now, &shared, view), HasSubstr(" 300.0   ±150 "));
    EXPECT_THAT(shown(now, &both, view), HasSubstr(" 300.0  ±50.0 "));
    EXPECT_THAT(shown(now, &alone, view), HasSubstr(" 300.0        "));
    EXPECT_THAT(shown(now, &alone, view), HasSubstr("±500J")) << "the energy has its error all the same";
  }
}

TEST(TopTable, EnergyHasItsError) {
  Books books = kNow;
  Books::Process& process = books.processes[0];
  process.joules = 14200;
  EXPECT_THAT(last(books, &kBefore), Not(HasSubstr("±")));
  process.error_joules = 2600;
  View by_pid;
  by_pid.sort = SortBy::kPid;
  EXPECT_THAT(shown(books, nullptr, by_pid), HasSubstr(" 14.2kJ  ±2.6kJ "));
  EXPECT_THAT(shown(books, nullptr, by_pid, {80, 24}), HasSubstr(" ~14.2kJ ")) << "no room, but it is an estimate";
  EXPECT_THAT(shown(books, nullptr, by_pid, {80, 24}), HasSubstr("    988J ")) << "measured";
  process.error_joules = 2e4;
  EXPECT_THAT(shown(books, nullptr, by_pid), HasSubstr(" 14.2kJ ±20.0kJ ")) << "it is booked, whatever the error";
  process.error_joules = 5;
  EXPECT_THAT(shown(books, nullptr, by_pid), Not(HasSubstr("±")));
  EXPECT_THAT(shown(books, nullptr, by_pid, {80, 24}), HasSubstr("  14.2kJ "));
}

TEST(TopTable, WhoEndedComesLastWithoutWatts) {
  Books books = kNow;
  books.processes[2].active = false;
  EXPECT_THAT(last(books, &kBefore), HasSubstr("ended"));
  EXPECT_THAT(last(books, &kBefore), Not(HasSubstr("13.0")));
}

struct Case {
  Size size;
  std::vector<const char*> has;
  std::vector<const char*> lacks;
};

TEST(TopTable, FitsTheWindow) {
  Books books = kNow;
  for (int i = 0; i < 60; ++i) {
    books.processes.push_back(process(1000 + i, 1));
    books.processes.back().name = std::string(150, 'x') + "ü";
    books.processes.back().owner = "team/" + std::string(100, 'y');
  }
  for (uint32_t i = 1; i < 8; ++i) books.gpus.push_back(gpu(i));
  const Case cases[] = {
      {{80, 24}, {"+/-", "SHARE", "MEMORY", "IDLE", "OWNER", "PROCESS", "[|", "1 to "}, {}},
      {{120, 40}, {"+/-", "SHARE", "IDLE", "OWNER", "PROCESS", "LIMIT", "[|"}, {"more GPUs"}},
      {{40, 10}, {"GPU", "WATTS", "ENERGY", "OWNER", "more GPUs", "1 to "}, {"+/-", "SHARE", "LIMIT"}},
      {{20, 5}, {"gpu-ledger"}, {}},
      {{3, 1}, {"gpu"}, {}},
      {{1, 1}, {"g"}, {}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(std::to_string(one.size.columns) + "x" + std::to_string(one.size.rows));
    const Screen screen = write_screen(books, &kBefore, {}, {"own books", ""}, one.size);
    const std::string text = all(screen);
    EXPECT_LE(screen.lines.size(), one.size.rows);
    for (const std::string& line : lines_of(screen)) EXPECT_LE(columns_of(line), one.size.columns) << line;
    for (const char* word : one.has) EXPECT_THAT(text, HasSubstr(word));
    for (const char* word : one.lacks) EXPECT_THAT(text, Not(HasSubstr(word)));
  }
}

TEST(TopTable, AnySizeAndOrder) {
  View view;
  for (size_t columns = 1; columns <= 130; columns += columns < 60 ? 1 : 7) {
    for (const SortColumn& column : sort_columns()) {
      view.sort = column.by;
      view.by_owner = !view.by_owner;
      const Size size{columns, columns % 13 + 1};
      const Screen screen = write_screen(kNow, &kBefore, view, {"own books", ""}, size);
      ASSERT_LE(screen.lines.size(), size.rows);
      for (const std::string& line : lines_of(screen)) ASSERT_LE(columns_of(line), columns) << line;
    }
  }
}

TEST(TopTable, ANarrowScreenKeepsWhatItIsSortedBy) {
  View view;
  for (const SortColumn& column : sort_columns()) {
    view.sort = column.by;
    const std::string head = shown(kNow, &kBefore, view, {40, 12});
    const char* titles[] = {"GPU", "PID", "WATTS", "SHARE", "MEMORY", "ENERGY", "IDLE", "OWNER", "PROCESS"};
    EXPECT_THAT(head, HasSubstr(titles[static_cast<size_t>(column.by)]));
  }
}

TEST(TopTable, ScrollsNoFurtherThanTheEnd) {
  Books books = kNow;
  for (int i = 0; i < 40; ++i) books.processes.push_back(process(2000 + i, 1));
  View view;
  view.sort = SortBy::kPid;
  const Size size{80, 24};
  const Screen top = write_screen(books, nullptr, view, {}, size);
  EXPECT_THAT(all(top), HasSubstr(" p11"));
  EXPECT_THAT(all(top), HasSubstr("1 to " + std::to_string(top.page) + " of 43"));
  view.offset = 1000;
  const Screen end = write_screen(books, nullptr, view, {}, size);
  EXPECT_EQ(end.offset, 43 - end.page);
  EXPECT_THAT(all(end), HasSubstr(" p2039"));
  EXPECT_THAT(all(end), Not(HasSubstr(" p11")));
  EXPECT_THAT(all(end), HasSubstr("to 43 of 43"));
}

TEST(TopTable, OldBooksAreDimmedBelowTheLineThatSaysSo) {
  const Screen fresh = write_screen(kNow, &kBefore, {}, {"books of x", ""}, {80, 24});
  EXPECT_FALSE(fresh.dimmed);
  const Screen old = write_screen(kNow, &kBefore, {}, {"books of x", "x: refused; no answer since 10:00:00"}, {80, 24});
  EXPECT_TRUE(old.dimmed);
  ASSERT_EQ(old.fresh_lines, 2u);
  EXPECT_EQ(lines_of(old)[1], "! x: refused; no answer since 10:00:00");
  EXPECT_THAT(all(old), HasSubstr(" p11")) << "the table stays";
  EXPECT_THAT(write_line(old.lines[5], true, true), HasSubstr("\x1b[2m"));
}

TEST(TopTable, NoEscapeSequenceWithoutColours) {
  const Screen screen = write_screen(kNow, &kBefore, {}, {"own books", "trouble"}, {120, 40});
  std::string coloured;
  for (const Line& line : screen.lines) {
    EXPECT_EQ(write_line(line, false, true).find('\x1b'), std::string::npos);
    coloured += write_line(line, true, false);
  }
  EXPECT_THAT(coloured, HasSubstr("\x1b[31m"));
  EXPECT_THAT(coloured, HasSubstr("\x1b[32m"));
}

TEST(TopTable, HelpNamesTheKeys) {
  View view;
  view.help = true;
  const std::string text = shown(kNow, &kBefore, view, {80, 24});
  for (const char* key : {"reverse", "filter", "add up", "quit", "sort by"}) EXPECT_THAT(text, HasSubstr(key));
  EXPECT_THAT(text, Not(HasSubstr(" p11")));
  const std::vector<std::string> lines = lines_of(write_screen(kNow, &kBefore, view, {}, {200, 0}));
  for (const std::string& line : lines) EXPECT_LE(columns_of(line), 80u) << line;
  EXPECT_LE(lines.size(), 24u);
}

TEST(TopTable, NamesCannotMoveTheCursorOrTheColumns) {
  for (const char* name : {"a\x1b[2Jb\r\nc", "\x9b\x31m\xff\xfe", "\xc2\x9b[31m", "a\u0301\u0301\u0301\u0301b",
                           "\u202eabc", "训练任务训练任务", "\U0001F680\U0001F680", "\ufe0f\u200d", "\t\t\t"}) {
    Books books = kNow;
    books.node = books.version = name;
    books.gpus[0].model = name;
    books.gpus[0].health = {name};
    books.processes[0].name = books.processes[0].owner = name;
    books.troubles = {{"docker", std::string("no ") + name}};
    View view;
    view.filter = "p1";
    for (const Size size : {Size{80, 24}, Size{120, 0}, Size{33, 12}}) {
      const Screen screen = write_screen(books, &kBefore, view, {std::string("books of ") + name, name}, size);
      for (const std::string& line : lines_of(screen)) {
        for (const char c : line) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << line;
        EXPECT_EQ(line.find("\xc2\x9b"), std::string::npos) << line;
        EXPECT_LE(columns_of(line), size.columns) << line;
      }
    }
  }
}

TEST(TopTable, WideNamesKeepTheColumnsInLine) {
  Books books = kNow;
  books.processes[0].owner = "训练任务训练任务训练任务训练任务训练任务";
  const auto lines = lines_of(write_screen(books, &kBefore, {}, {}, {120, 0}));
  const auto place = [](const std::string& line, const char* word) {
    return columns_of(line.substr(0, line.find(word)));
  };
  EXPECT_EQ(place(lines.back(), "p11"), place(lines[lines.size() - 2], "p12"));
}

TEST(TopTable, LongNamesKeepTheirEnd) {
  EXPECT_EQ(both_ends("research/jupyter-lab-3", 15), "researc~r-lab-3");
  EXPECT_EQ(both_ends("short", 8), "short   ");
  EXPECT_EQ(both_ends("abcdef", 2), "ab");
  EXPECT_EQ(columns_of(both_ends("训练任务训练任务训练任务", 9)), 9u);
  EXPECT_EQ(both_ends("", 0), "");
}

TEST(TopTable, ANumberThatIsTooLongIsNotCut) {
  Books books = kNow;
  books.gpus[0].watts = 1e300;
  books.processes[0].joules = 1e300;
  EXPECT_THAT(shown(books, nullptr), HasSubstr("#######"));
}

TEST(TopTable, GpuThatDoesNotAnswer) {
  Books books = kNow;
  books.gpus.front().up = false;
  EXPECT_THAT(shown(books, &kBefore), HasSubstr("does not answer"));
}

TEST(TopTable, TheTitleAddsUpWhatIsKnown) {
  const auto title = [](const Books& books) { return lines_of(write_screen(books, nullptr, {}, {}, {})).front(); };
  Books books = kNow;
  for (const uint32_t index : {1u, 2u}) books.gpus.push_back(gpu(index));
  EXPECT_EQ(title(books), "gpu-ledger: 3 GPUs, 1238 W, 3 processes");
  books.gpus[2].watts.reset();
  EXPECT_EQ(title(books), "gpu-ledger: 3 GPUs, 825 W of 2 GPUs, 3 processes");
  books.gpus[1].up = false;
  EXPECT_EQ(title(books), "gpu-ledger: 3 GPUs, 412 W of 1 GPU, 3 processes");
  books.gpus[0].up = false;
  EXPECT_EQ(title(books), "gpu-ledger: 3 GPUs, 3 processes");
}

TEST(TopTable, NothingToShow) {
  EXPECT_THAT(shown(Books{}, nullptr, {}, {80, 24}), HasSubstr("no process"));
  View view;
  view.filter = "nobody";
  EXPECT_THAT(shown(kNow, nullptr, view, {80, 24}), HasSubstr("no process fits the filter"));
}

// Without wrapping, the cursor stays on the last character of a line that fills the width: erasing then removes it.
TEST(TopTable, ErasesBeforeItWrites) {
  Screen screen;
  screen.lines = {{{"abc"}}, {}, {{"xyz"}}};
  EXPECT_EQ(Terminal::picture(screen, false), "\x1b[H\x1b[Kabc\r\n\x1b[K\r\n\x1b[Jxyz");
}

}  // namespace
}  // namespace gpuledger::app::top
