// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "expose/expose.h"
#include "exposition_parser.h"
#include "node_example.h"

namespace gpuledger::expose {
namespace {

// Whoever names a process or a container must not be able to add series, end a line or break the scrape.
Cycle with_name(const std::string& name) {
  Cycle cycle = node_example();
  ProcessAccount& process = process_of(cycle, 100);
  process.identity.name = name;
  process.identity.owner.pod = name;
  process.identity.container_id = name;
  cycle.ledger.owners[0].owner.pod = name;
  cycle.sources[1].source = "x" + name;
  return cycle;
}

size_t samples_in(const std::string& text, Format format, const std::string& name) {
  const auto result = parse_exposition(text, format);
  EXPECT_TRUE(result.ok()) << result.error().message << " for " << ::testing::PrintToString(name);
  return result.ok() ? result->samples.size() : 0;
}

void expect_harmless(const std::string& name) {
  const size_t plain = samples_in(write_text(with_name("plain"), example_options()), Format::kText, "plain");
  const Cycle cycle = with_name(name);
  EXPECT_EQ(samples_in(write_text(cycle, example_options()), Format::kText, name), plain);
  EXPECT_EQ(samples_in(write_openmetrics(cycle, example_options()), Format::kOpenMetrics, name), plain);
}

TEST(HostileNames, ChangeNothingButTheirLabel) {
  for (const std::string& name :
       {std::string("\"} 1\nevil_total 1\n"), std::string("\\"), std::string("\\\""), std::string("a\nb"),
        std::string("\r\n# EOF\n"), std::string("\xff\xfe\x80"), std::string("\0\x01\x1f", 3), std::string("{}=,\"'"),
        std::string("\xF0\x9F\x9A"), std::string(100'000, '"'), std::string(" "), std::string("\u2028\u202e")}) {
    expect_harmless(name);
  }
}

TEST(HostileNames, AreKeptWhereTheyAreText) {
  const auto result = parse_exposition(write_text(with_name("a\"b\\c\nd 学习"), example_options()), Format::kText);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->find("my_gpu_process_active", {{"process_name", "a\"b\\c\nd 学习"}}).size(), 1u);
}

TEST(HostileNames, RandomBytes) {
  std::mt19937 random(20240501);
  for (int round = 0; round < 200; ++round) {
    std::string name(1 + random() % 40, ' ');
    for (char& c : name) c = static_cast<char>(random());
    expect_harmless(name);
  }
}

TEST(HostileNames, TwoThatBecomeTheSameAreOneSeries) {
  Cycle cycle = node_example();
  ProcessAccount first = process_of(cycle, 200);
  first.identity.name = "\x01";
  ProcessAccount second = first;
  second.identity.name = "\x02";
  cycle.ledger.processes = {first, second};
  const auto result = parse_exposition(write_text(cycle, example_options()), Format::kText);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->micro_sum("my_gpu_process_energy_joules_total"), 2 * first.booked.shared.microjoules());
}

}  // namespace
}  // namespace gpuledger::expose
