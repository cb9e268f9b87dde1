// SPDX-License-Identifier: Apache-2.0
#include "expose/text_writer.h"

#include <gtest/gtest.h>

#include <limits>

#include "expose/escape.h"
#include "expose/labels.h"

namespace gpuledger::expose {
namespace {

template <typename Number>
std::string number(Number value) {
  std::string out;
  append_number(out, value);
  return out;
}

std::string escaped(std::string_view value) {
  std::string out;
  append_label_value(out, value);
  return out;
}

TEST(Numbers, IntegersOfSmallUnitsAreExactDecimals) {
  EXPECT_EQ(number(Energy::microjoules(1'234'567'891)), "1234.567891");
  EXPECT_EQ(number(Energy::microjoules(1)), "0.000001");
  EXPECT_EQ(number(Energy::microjoules(120'500'000)), "120.5");
  EXPECT_EQ(number(Energy()), "0");
  EXPECT_EQ(number(Energy::microjoules(-1'500'000)), "-1.5");
  EXPECT_EQ(number(Energy::microjoules(std::numeric_limits<int64_t>::max())), "9223372036854.775807");
  EXPECT_EQ(number(Energy::microjoules(std::numeric_limits<int64_t>::min())), "-9223372036854.775808");
  EXPECT_EQ(number(Power::milliwatts(75'050)), "75.05");
  EXPECT_EQ(number(Nanoseconds(1'700'000'100'250'000'000)), "1700000100.25");
}

TEST(Numbers, IntegersHaveNoExponent) {
  EXPECT_EQ(number(uint64_t{1} << 63), "9223372036854775808");
  EXPECT_EQ(number(Bytes{150'754'820'096}), "150754820096");
}

TEST(Numbers, DoublesReadBackTheSame) {
  EXPECT_EQ(number(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(number(0.85), "0.85");
  EXPECT_EQ(number(61.0), "61");
  EXPECT_EQ(number(0.0), "0");
  EXPECT_EQ(number(1700000000.0), "1700000000");
  EXPECT_EQ(number(0.0000012345678901234567), "0.0000012345678901234567");
  EXPECT_EQ(number(-0.25), "-0.25");
  EXPECT_EQ(number(1e-300), "1e-300");
  EXPECT_EQ(number(-1.7976931348623157e308), "-1.7976931348623157e+308");
}

TEST(Numbers, BoundsAreCanonical) {
  const auto bound = [](double value) {
    std::string out = "7";  // what stands before must not be looked at
    append_bound(out, value);
    return out.substr(1);
  };
  EXPECT_EQ(bound(1), "1.0");
  EXPECT_EQ(bound(0.0001), "0.0001");
}

TEST(Numbers, PercentagesAreNotCrooked) {
  EXPECT_EQ(percent_of(0.07), 7.0);
  EXPECT_EQ(percent_of(1.0 / 3), 33.333333);
}

TEST(Escape, LabelValues) {
  EXPECT_EQ(escaped("python3 train.py"), "python3 train.py");
  EXPECT_EQ(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
  EXPECT_EQ(escaped("größe 学习 🚀"), "größe 学习 🚀");
}

TEST(Escape, WhatIsNotTextIsReplaced) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(escaped(std::string_view("a\0b", 3)), "a" + bad + "b");
  EXPECT_EQ(escaped("\x1b[31m\r\t\x7f"), bad + "[31m" + bad + bad + bad);
  EXPECT_EQ(escaped("\xC2\x85"), bad);                            // a C1 control
  EXPECT_EQ(escaped("\xff\xfe"), bad + bad);                      // never in UTF-8
  EXPECT_EQ(escaped("\xC0\x80"), bad + bad);                      // overlong
  EXPECT_EQ(escaped("\xED\xA0\x80"), bad + bad + bad);            // surrogate
  EXPECT_EQ(escaped("\xF4\x90\x80\x80"), bad + bad + bad + bad);  // above U+10FFFF
  EXPECT_EQ(escaped("x\xE5\xAD"), "x" + bad + bad);               // cut off
  EXPECT_EQ(escaped("\xE5\xAD\xA6"), "\xE5\xAD\xA6");
}

TEST(Escape, HelpKeepsQuotesInTextFormatOnly) {
  std::string text, openmetrics;
  append_help(text, "a \"b\" \\ \n", false);
  append_help(openmetrics, "a \"b\" \\ \n", true);
  EXPECT_EQ(text, "a \"b\" \\\\ \\n");
  EXPECT_EQ(openmetrics, "a \\\"b\\\" \\\\ \\n");
}

TEST(Labels, EmptyOnesAreLeftOutAndConstantsComeLast) {
  const ConstantLabels constants = {{"node", "n1"}, {"pod", "exporter"}, {"namespace", ""}};
  EXPECT_EQ(LabelText(constants).add("gpu", uint64_t{0}).add("pod", "").take(), R"(gpu="0",node="n1",pod="exporter")");
  EXPECT_EQ(LabelText(constants).add("pod", "mine").take(), R"(pod="mine",node="n1")");
  EXPECT_EQ(LabelText(ConstantLabels{}).take(), "");
}

TEST(TextWriter, FamilyWithoutSamplesLeavesNoTrace) {
  TextWriter out(Format::kText, 0);
  out.begin_family({"empty", MetricType::kGauge, "", "Nothing."});
  out.begin_family({"nan", MetricType::kGauge, "", "Not a number."});
  out.add("", std::numeric_limits<double>::quiet_NaN());
  out.add("", std::numeric_limits<double>::infinity());
  EXPECT_EQ(out.samples(), 0u);
  EXPECT_EQ(out.take(), "");
}

TEST(TextWriter, CounterInBothFormats) {
  for (const Format format : {Format::kText, Format::kOpenMetrics}) {
    TextWriter out(format, 0);
    out.begin_family({"spent_joules_total", MetricType::kCounter, "joules", "Spent."});
    out.add("gpu=\"0\"", Energy::millijoules(1500), "reason=\"idle\"");
    out.add("", Energy::millijoules(2));
    const std::string samples = "spent_joules_total{gpu=\"0\",reason=\"idle\"} 1.5\nspent_joules_total 0.002\n";
    EXPECT_EQ(out.samples(), 2u);
    EXPECT_EQ(out.take(),
              format == Format::kText
                  ? "# HELP spent_joules_total Spent.\n# TYPE spent_joules_total counter\n" + samples
                  : "# HELP spent_joules Spent.\n# TYPE spent_joules counter\n# UNIT spent_joules joules\n" + samples +
                        "# EOF\n");
  }
}

TEST(TextWriter, HistogramIsCumulative) {
  DurationHistogram histogram;
  histogram.observe(0.00005);
  histogram.observe(1.0);  // a bound belongs to its bucket
  histogram.observe(2.5);
  TextWriter out(Format::kText, 0);
  out.begin_family({"took_seconds", MetricType::kHistogram, "seconds", "Took."});
  out.add("call=\"x\"", &histogram);
  const std::string text = out.take();
  EXPECT_NE(text.find("took_seconds_bucket{call=\"x\",le=\"0.001\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("took_seconds_bucket{call=\"x\",le=\"0.1\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("took_seconds_bucket{call=\"x\",le=\"1.0\"} 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("took_seconds_bucket{call=\"x\",le=\"+Inf\"} 3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("took_seconds_sum{call=\"x\"} 3.50005\ntook_seconds_count{call=\"x\"} 3\n"), std::string::npos);
}

}  // namespace
}  // namespace gpuledger::expose
