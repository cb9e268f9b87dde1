// SPDX-License-Identifier: Apache-2.0
#include "expose/upstream_parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace gpuledger::expose {
namespace {

using Kind = UpstreamLine::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

uint64_t faults_of(const UpstreamText& text, LineFault fault) {
  return text.faults[static_cast<size_t>(fault)];
}

std::string names_of(const UpstreamText& text) {
  std::string names;
  for (const UpstreamFamily& family : text.families) {
    names += family.name + "/" + family.type + ":" + std::to_string(family.series.size()) + " ";
  }
  return names;
}

std::string refusal_of(std::string_view text) {
  const auto parsed = parse_upstream(text);
  return parsed ? "taken" : parsed.error().message;
}

TEST(UpstreamLine, Samples) {
  const auto line = parse_upstream_line(R"(dcgm_gpu_temp{uuid="GPU-1",gpu="0"} 33)");
  ASSERT_EQ(line.kind, Kind::kSample);
  EXPECT_EQ(line.name, "dcgm_gpu_temp");
  EXPECT_EQ(line.text, "33");
  EXPECT_THAT(line.labels, ElementsAre(UpstreamLabel{"gpu", "0"}, UpstreamLabel{"uuid", "GPU-1"}));
}

TEST(UpstreamLine, WhatTheFormatAllows) {
  struct Row {
    std::string_view line;
    std::string_view value;
    size_t labels;
  };
  for (const Row& row :
       {Row{"up 1", "1", 0}, Row{"  up\t1  ", "1", 0}, Row{"up{} 1", "1", 0}, Row{"up{a=\"b\",} 1", "1", 1},
        Row{"up { a = \"b\" , c = \"d\" } 1", "1", 2}, Row{"up{a=\"\"} 1", "1", 0}, Row{"up -1.5", "-1.5", 0},
        Row{"up +1", "+1", 0}, Row{"up 1e3", "1e3", 0}, Row{"up{a=\"},{\"} .5", ".5", 1},
        Row{"up{a=\"\xC3\xA9\"} 1", "1", 1}, Row{"a:b:c 0", "0", 0}}) {
    const auto line = parse_upstream_line(row.line);
    ASSERT_EQ(line.kind, Kind::kSample) << row.line << ": " << fault_name(line.fault);
    EXPECT_EQ(line.text, row.value) << row.line;
    EXPECT_EQ(line.labels.size(), row.labels) << row.line;
  }
}

TEST(UpstreamLine, QuotesAndBackslashes) {
  const auto line = parse_upstream_line(R"(up{model="a \"b\" \\ c\nd",x="\\\""} 1)");
  ASSERT_EQ(line.kind, Kind::kSample);
  EXPECT_THAT(line.labels, ElementsAre(UpstreamLabel{"model", "a \"b\" \\ c\nd"}, UpstreamLabel{"x", "\\\""}));
}

TEST(UpstreamLine, Faults) {
  struct Row {
    std::string_view line;
    LineFault fault;
  };
  const std::string long_line = "up{a=\"" + std::string(kLongestUpstreamLine, 'x') + "\"} 1";
  std::string many_labels = "up{";
  for (int i = 0; i < 41; ++i) many_labels += "l" + std::to_string(i) + "=\"x\",";
  many_labels += "} 1";
  for (const Row& row : {
           Row{"1up 1", LineFault::kName},
           Row{"{a=\"b\"} 1", LineFault::kName},
           Row{"<html>", LineFault::kName},
           Row{"# TYPE u-p gauge", LineFault::kName},
           Row{"# TYPE up", LineFault::kType},
           Row{"# TYPE up gauges", LineFault::kType},
           Row{"up{1a=\"b\"} 1", LineFault::kLabel},
           Row{"up{__name__=\"other\"} 1", LineFault::kLabel},
           Row{"up{a=\"b\",a=\"c\"} 1", LineFault::kLabel},
           Row{"up{a=\"\",a=\"c\"} 1", LineFault::kLabel},
           Row{"up{a:b=\"c\"} 1", LineFault::kLabel},
           Row{"up{a=b} 1", LineFault::kLabel},
           Row{"up{a=\"b\"", LineFault::kLabel},
           Row{"up{a=\"b 1", LineFault::kLabel},
           Row{"up{a=\"b\" c=\"d\"} 1", LineFault::kLabel},
           Row{"up{,} 1", LineFault::kLabel},
           Row{many_labels, LineFault::kLabel},
           Row{R"(up{a="b\t"} 1)", LineFault::kEscape},
           Row{R"(up{a="b\)", LineFault::kEscape},
           Row{"up", LineFault::kValue},
           Row{"up N/A", LineFault::kValue},
           Row{"up 1x", LineFault::kValue},
           Row{"up 0x10", LineFault::kValue},
           Row{"up +-1", LineFault::kValue},
           Row{"up 1,5", LineFault::kValue},
           Row{"up 1 # {trace=\"x\"} 1", LineFault::kValue},
           Row{"up NaN", LineFault::kBlank},
           Row{"up +Inf", LineFault::kBlank},
           Row{"up 1e999", LineFault::kBlank},
           Row{"up 2147483632", LineFault::kBlank},
           Row{"up 9223372036854775794", LineFault::kBlank},
           Row{"up 140737488355330.000000", LineFault::kBlank},
           Row{"up 1 1700000000000", LineFault::kTimestamp},
           Row{"up 1 -5", LineFault::kTimestamp},
           Row{"up{a=\"\xFF\"} 1", LineFault::kNotText},
           Row{"up{a=\"\xC0\x80\"} 1", LineFault::kNotText},
           Row{"up{a=\"\x1b[2J\"} 1", LineFault::kNotText},
           Row{"up 1\r", LineFault::kNotText},
           Row{long_line, LineFault::kTooLong},
       }) {
    const auto line = parse_upstream_line(row.line);
    EXPECT_EQ(line.kind, Kind::kFaulty) << row.line.substr(0, 80);
    EXPECT_STREQ(fault_name(line.fault), fault_name(row.fault)) << row.line.substr(0, 80);
  }
}

TEST(UpstreamLine, CommentsAreNothing) {
  for (const std::string_view line : {"", "   ", "#", "# some words", "#HELPX up y", "# EOF", "# UNIT up seconds"})
    EXPECT_EQ(parse_upstream_line(line).kind, Kind::kNothing) << line;
}

TEST(UpstreamLine, NumbersNextToTheBlanksAreNumbers) {
  for (const std::string_view line : {"up 2147483631", "up 2147483636", "up 140737488355327", "up 140737488355332",
                                      "up 9223372036854770000", "up -9223372036854775808"})
    EXPECT_EQ(parse_upstream_line(line).kind, Kind::kSample) << line;
}

// As the first exporter wrote it: by GPU, headers before the first one's lines only.
TEST(UpstreamParse, PutsFamiliesTogether) {
  const auto text = parse_upstream(
      "# HELP dcgm_sm_clock SM clock frequency (in MHz).\n"
      "# TYPE dcgm_sm_clock gauge\n"
      "dcgm_sm_clock{gpu=\"0\",uuid=\"GPU-a\"} 135\n"
      "# HELP dcgm_power_violation Throttling \\\\ due\\nto power.\n"
      "# TYPE dcgm_power_violation counter\n"
      "dcgm_power_violation{gpu=\"0\",uuid=\"GPU-a\"} 0\n"
      "dcgm_sm_clock{gpu=\"1\",uuid=\"GPU-b\"} 1380\n"
      "dcgm_power_violation{gpu=\"1\",uuid=\"GPU-b\"} 7\n");
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(names_of(*text), "dcgm_sm_clock/gauge:2 dcgm_power_violation/counter:2 ");
  EXPECT_EQ(text->families[0].help, "SM clock frequency (in MHz).");
  EXPECT_EQ(text->families[1].help, "Throttling \\ due\nto power.");
  EXPECT_EQ(text->families[0].series[1].value, "1380");
  EXPECT_THAT(text->faults, ::testing::Each(0u));
}

TEST(UpstreamParse, LeavesOutAndCountsWhatIsWrong) {
  const auto text = parse_upstream(
      "# TYPE a gauge\na{x=\"1\",y=\"2\"} 1\na{y=\"2\",x=\"1\"} 2\na{y=\"2\",x=\"1\",z=\"\"} 3\n"
      "# TYPE a counter\n# TYPE a gauge\na{x=\"2\"} N/A\nb{x=\"\\q\"} 1\n# TYPE only_a_header gauge\n"
      "h_bucket{le=\"+Inf\"} 3\n# TYPE s summary\ns 1\n");
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(names_of(*text), "a/gauge:1 h_bucket/untyped:1 s/untyped:1 ");
  EXPECT_EQ(text->families[0].series[0].value, "1");
  EXPECT_EQ(faults_of(*text, LineFault::kDuplicate), 2u);
  EXPECT_EQ(faults_of(*text, LineFault::kType), 1u);
  EXPECT_EQ(faults_of(*text, LineFault::kValue), 1u);
  EXPECT_EQ(faults_of(*text, LineFault::kEscape), 1u);
}

TEST(UpstreamParse, RefusesWhatCannotBeTrustedAsAWhole) {
  EXPECT_THAT(refusal_of(""), HasSubstr("nothing"));
  EXPECT_THAT(refusal_of("a 1\nb 31"), HasSubstr("ends within a line"));
  EXPECT_THAT(refusal_of("<html><body>502 Bad Gateway</body></html>\n"), HasSubstr("no metrics"));
  EXPECT_THAT(refusal_of("# TYPE a gauge\n"), HasSubstr("no metrics"));
  EXPECT_THAT(refusal_of(std::string_view("a 1\n\0\n", 6)), HasSubstr("not a text"));
  EXPECT_THAT(refusal_of(std::string(kLargestUpstream + 1, '\n')), HasSubstr("8 MiB"));
  EXPECT_EQ(refusal_of("a 1\n"), "taken");
}

TEST(UpstreamParse, RefusesMoreSeriesThanANodeHas) {
  std::string text, names;
  for (size_t i = 0; i < kMostUpstreamSeries; ++i) text += "a{x=\"" + std::to_string(i) + "\"} 1\n";
  EXPECT_EQ(refusal_of(text), "taken");
  EXPECT_THAT(refusal_of(text + "a 1\n"), HasSubstr("series"));
  // Headers of families that never come do not crowd out memory, nor what is there.
  for (size_t i = 0; i < kMostUpstreamSeries + 9; ++i) names += "# HELP n" + std::to_string(i) + " x\n";
  EXPECT_EQ(refusal_of("a 1\n" + names + "a{x=\"2\"} 1\n"), "taken");
  EXPECT_THAT(refusal_of(names + "a 1\n"), HasSubstr("series"));
}

long resident_bytes() {
  long total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST(UpstreamParse, TheCostliestTextTakesLittle) {
  // As many labels as there may be, each as short as can be; and as many lines, as long as fit.
  std::string many, large;
  for (size_t i = 0; i < kMostUpstreamLabels / 15; ++i) {
    many += "a{i=\"" + std::to_string(i) + "\"";
    for (char name = 'j'; name < 'j' + 14; ++name) many += std::string(",") + name + "=\"b\"";
    many += "} 1\n";
  }
  ASSERT_LT(many.size(), kLargestUpstream);
  for (size_t i = 0; large.size() < kLargestUpstream - 2000; ++i)
    large += "a{i=\"" + std::to_string(i) + std::string(1000, 'x') + "\"} 1\n";
  for (const std::string* text : {&many, &large}) {
    const long before = resident_bytes();
    const auto taken = parse_upstream(*text);
    ASSERT_TRUE(taken) << taken.error().message;
    const long grown = resident_bytes() - before;
    std::printf("%zu kB of text take %ld kB\n", text->size() / 1000, grown / 1000);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_LT(grown, 40'000'000);
#endif
  }
  EXPECT_THAT(refusal_of(many + "a{x=\"1\"} 1\n"), HasSubstr("labels"));
}

}  // namespace
}  // namespace gpuledger::expose
