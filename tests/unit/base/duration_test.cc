// SPDX-License-Identifier: Apache-2.0
#include "base/duration.h"

#include <gtest/gtest.h>

namespace gpuledger {
namespace {

using namespace std::chrono_literals;

TEST(ParseDuration, GoAndPrometheusForms) {
  const std::pair<const char*, Nanoseconds> cases[] = {
      {"500ms", 500ms},
      {"1s", 1s},
      {"10s", 10s},
      {"1m30s", 90s},
      {"1h30m", 90min},
      {"1.5h", 90min},
      {".5s", 500ms},
      {"1.s", 1s},
      {"+2s", 2s},
      {"1d", 24h},
      {"1w", 168h},
      {"1y", 8760h},
      {"1d12h", 36h},
      {"1h0m0.25s", 1h + 250ms},
      {"100us", 100us},
      {"100µs", 100us},       // U+00B5
      {"100\u03bcs", 100us},  // U+03BC
      {"7ns", 7ns},
      {"0.000000001s", 1ns},
      {"0.0000000000000000000000001s", 0ns},
      {"0", 0ns},
      {"0s", 0ns},
      {"9223372036854775807ns", Nanoseconds::max()},
  };
  for (const auto& [text, expected] : cases) {
    const auto parsed = parse_duration(text);
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_EQ(*parsed, expected) << text;
  }
}

TEST(ParseDuration, RefusesWithTheReason) {
  const std::string hint = " is not a duration (write 500ms, 10s, 1m30s)";
  for (const char* text : {"", "5", "s", "1", "1.5", "10 s", "10sec", "1m30", "ten", "1e3s", "..s", ".s", " 1s", "1s ",
                           "1M", "0x1s", "1,5s", "+", "00"}) {
    EXPECT_EQ(parse_duration(text).error().message, "\"" + std::string(text) + "\"" + hint);
  }
  for (const char* text : {"-1s", "-0", "-"}) {
    EXPECT_EQ(parse_duration(text).error().message,
              "\"" + std::string(text) + "\" is negative (write 500ms, 10s, 1m30s)");
  }
  for (const char* text :
       {"9223372036854775808ns", "300y", "200y200y", "99999999999999999999999999999999999999999999h"}) {
    EXPECT_EQ(parse_duration(text).error().message, "\"" + std::string(text) + "\" is too long a duration");
  }
}

TEST(WriteDuration, RoundTrips) {
  const std::pair<Nanoseconds, const char*> cases[] = {{0ns, "0s"},        {100ms, "100ms"}, {1s, "1s"},
                                                       {90s, "1m30s"},     {24h, "1d"},      {1500us, "1ms500us"},
                                                       {1h + 1ns, "1h1ns"}};
  for (const auto& [duration, text] : cases) {
    EXPECT_EQ(write_duration(duration), text);
    EXPECT_EQ(*parse_duration(text), duration);
  }
}

}  // namespace
}  // namespace gpuledger
