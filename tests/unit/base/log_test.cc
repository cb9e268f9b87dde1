// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <vector>

namespace gpuledger {
namespace {

using testing::MatchesRegex;

class LogTest : public testing::Test {
 protected:
  void TearDown() override { (void)configure_log("info", "text"); }

  void use(const char* level, const char* format) { ASSERT_TRUE(configure_log(level, format).ok()); }

  template <typename Work>
  static std::vector<std::string> lines_of(Work work) {
    testing::internal::CaptureStderr();
    work();
    std::istringstream captured(testing::internal::GetCapturedStderr());
    std::vector<std::string> lines;
    for (std::string line; std::getline(captured, line);) lines.push_back(line);
    return lines;
  }
};

TEST_F(LogTest, TextLine) {
  use("info", "text");
  const auto lines = lines_of([] {
    log_info("listening", {{"address", ":9400"}, {"count", 3}, {"tls", false}, {"note", "two words"}, {"empty", ""}});
  });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], MatchesRegex("ts=[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z level=info "
                                     "msg=\"listening\" address=:9400 count=3 tls=false note=\"two words\" "
                                     "empty=\"\""));
}

TEST_F(LogTest, JsonLineIsOneObject) {
  use("debug", "json");
  const auto lines = lines_of([] {
    log_warn("say \"no\"",
             {{"path", "C:\\x"}, {"count", 3}, {"ok", true}, {"odd", std::numeric_limits<double>::infinity()}});
  });
  ASSERT_EQ(lines.size(), 1u);
  const auto object = nlohmann::json::parse(lines[0]);
  EXPECT_EQ(object["level"], "warn");
  EXPECT_EQ(object["msg"], "say \"no\"");
  EXPECT_EQ(object["path"], "C:\\x");
  EXPECT_EQ(object["count"], 3);
  EXPECT_EQ(object["ok"], true);
  EXPECT_EQ(object["odd"], "inf");
  EXPECT_THAT(object["ts"].get<std::string>(), MatchesRegex("[0-9-]+T[0-9:.]+Z"));
}

TEST_F(LogTest, LevelsBelowTheOneAskedForAreSilent) {
  const auto all = [] {
    log_debug("d");
    log_info("i");
    log_warn("w");
    log_error("e");
  };
  use("debug", "text");
  EXPECT_EQ(lines_of(all).size(), 4u);
  use("info", "text");
  EXPECT_EQ(lines_of(all).size(), 3u);
  use("warn", "json");
  EXPECT_EQ(lines_of(all).size(), 2u);
  use("error", "text");
  const auto lines = lines_of(all);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], testing::HasSubstr("level=error msg=\"e\""));
}

TEST_F(LogTest, HostileValuesCannotForgeLines) {
  const std::string hostile = "x\nts=2026-01-01T00:00:00.000Z level=error msg=\"forged\"\r\x1b[2J\xff";
  for (const char* format : {"text", "json"}) {
    use("info", format);
    const auto lines = lines_of([&] { log_info(hostile, {{"process", hostile}}); });
    ASSERT_EQ(lines.size(), 1u) << format;
    EXPECT_EQ(lines[0].find('\x1b'), std::string::npos);
    EXPECT_EQ(lines[0].find('\r'), std::string::npos);
    EXPECT_EQ(lines[0].find("msg=\"forged\""), std::string::npos);
  }
}

TEST_F(LogTest, ValueWithEqualsSignOrBracesStaysOneField) {
  use("info", "text");
  const auto lines = lines_of([] { log_info("{} %v %s", {{"a", "b=c"}, {"fmt", "{}{0}"}}); });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], testing::EndsWith("msg=\"{} %v %s\" a=\"b=c\" fmt=\"{}{0}\""));
}

TEST_F(LogTest, UnknownNamesAreErrorsAndChangeNothing) {
  use("warn", "text");
  EXPECT_EQ(configure_log("loud", "text").error().message, "no log level \"loud\" (debug, info, warn or error)");
  EXPECT_EQ(configure_log("debug", "xml").error().message, "no log format \"xml\" (text or json)");
  EXPECT_TRUE(lines_of([] { log_info("still hidden"); }).empty());
}

TEST_F(LogTest, ThreadsNeverMixLinesWhileTheFormatChanges) {
  use("info", "text");
  const auto lines = lines_of([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([] {
        for (int i = 0; i < 200; ++i) log_info("tick", {{"i", i}});
      });
    }
    for (int i = 0; i < 50; ++i) (void)configure_log("info", i % 2 == 0 ? "json" : "text");
    for (std::thread& thread : threads) thread.join();
  });
  ASSERT_EQ(lines.size(), 800u);
  for (const std::string& line : lines) {
    const bool json = line.front() == '{' && nlohmann::json::accept(line);
    const bool text = line.starts_with("ts=") && line.find(" msg=\"tick\" i=") != std::string::npos;
    EXPECT_TRUE(json || text) << line;
  }
}

TEST_F(LogTest, StateLogSpeaksOnChangeOnly) {
  use("info", "text");
  StateLog states;
  const auto lines = lines_of([&] {
    EXPECT_TRUE(states.update("gpu0", "up", "GPU answers"));
    EXPECT_FALSE(states.update("gpu0", "up", "GPU answers"));
    EXPECT_TRUE(states.update("gpu1", "up", "GPU answers"));
    EXPECT_TRUE(states.update("gpu0", "lost", "GPU is lost", LogLevel::kWarn));
    EXPECT_FALSE(states.update("gpu0", "lost", "GPU is lost", LogLevel::kWarn));
    EXPECT_TRUE(states.update("gpu0", "up", "GPU is back"));
  });
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[2], testing::EndsWith("level=warn msg=\"GPU is lost\" name=gpu0 state=lost"));
  EXPECT_THAT(lines[3], testing::EndsWith("level=info msg=\"GPU is back\" name=gpu0 state=up"));
}

TEST_F(LogTest, StateLogSaysEachReasonOnceWhileTheStateLasts) {
  use("info", "text");
  StateLog states;
  const auto says = [&](const std::string& state, const std::string& message) {
    return states.update("apiserver", state, message, LogLevel::kWarn);
  };
  const auto lines = lines_of([&] {
    EXPECT_TRUE(says("down", "source fails: no route after 3 s"));
    EXPECT_FALSE(says("down", "source fails: no route after 17 s")) << "only a number has changed";
    EXPECT_TRUE(says("down", "source fails: HTTP 403"));
    for (int cycle = 0; cycle < 5; ++cycle) {
      EXPECT_FALSE(says("down", "source fails: no route after 9 s")) << "two reasons in turn do not fill the log";
      EXPECT_FALSE(says("down", "source fails: HTTP 401"));
    }
    EXPECT_TRUE(says("up", "source works"));
    EXPECT_TRUE(says("down", "source fails: HTTP 403")) << "another outage";
  });
  EXPECT_EQ(lines.size(), 4u);
}

TEST_F(LogTest, StateLogEndsWhereEveryReasonDiffers) {
  use("info", "text");
  StateLog states;
  std::string reason = "fails: ";
  const auto lines = lines_of([&] {
    for (int cycle = 0; cycle < 100; ++cycle) (void)states.update("odd", "down", reason += 'x', LogLevel::kWarn);
  });
  EXPECT_GT(lines.size(), 1u);
  EXPECT_LE(lines.size(), 10u);
}

}  // namespace
}  // namespace gpuledger
