// SPDX-License-Identifier: Apache-2.0
#include "base/quote.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/version.h"

namespace gpuledger {
namespace {

using namespace std::string_literals;

struct Case {
  std::string text;
  std::string expected;
};

TEST(InQuotes, EscapesWhatCouldForgeALineOrMoveATerminal) {
  const Case cases[] = {
      {"", R"("")"},
      {"python3 train.py", R"("python3 train.py")"},
      {R"(a"b\c)", R"("a\"b\\c")"},
      {"a\nb\rc\td", R"("a\nb\rc\td")"},
      {"\x1b[2J", R"("\u001b[2J")"},
      {"nul\0byte"s, R"("nul\u0000byte")"},
      {"\x7f", R"("\u007f")"},
      {"\xc2\x9b", R"("\u009b")"},                  // C1: one-character escape sequence starter
      {"\xe2\x80\xa8", R"("\u2028")"},              // line separator
      {"\xe2\x80\xae", R"("\u202e")"},              // right-to-left override
      {"한글 µ 😀", "\"한글 µ 😀\""},                 // plain text of any script stays readable
      {"\xff\xfe", R"("\ufffd\ufffd")"},            // no UTF-8
      {"\xc0\x8a", R"("\ufffd\ufffd")"},            // overlong newline
      {"\xed\xa0\x80", R"("\ufffd\ufffd\ufffd")"},  // surrogate
      {"cut \xe2\x80", R"("cut \ufffd\ufffd")"},
  };
  for (const Case& c : cases) EXPECT_EQ(in_quotes(c.text), c.expected);
}

TEST(InQuotes, IsAlwaysOneJsonStringOnOneLine) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string bytes = {static_cast<char>(first), static_cast<char>(second)};
      const std::string out = in_quotes(bytes);
      ASSERT_TRUE(nlohmann::json::accept(out)) << first << " " << second;
      ASSERT_EQ(out.find('\n'), std::string::npos);
    }
  }
}

TEST(Version, IsThreeNumbers) {
  EXPECT_THAT(version(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

}  // namespace
}  // namespace gpuledger
