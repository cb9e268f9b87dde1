// SPDX-License-Identifier: Apache-2.0
#include "http/web_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "unit/http/temporary_directory.h"

namespace gpuledger::http {
namespace {

TEST(WebSettings, ABrokenFileIsReportedOnce) {
  TemporaryDirectory directory;
  const std::string path = directory.write("web.yml", "rate_limit: {interval: 1h, burst: 3}\n");
  std::vector<std::string> outcomes;
  auto settings = WebSettings::open(
      path, [&](const Status& outcome) { outcomes.push_back(outcome.ok() ? "ok" : outcome.error().message); });
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  const auto look = [&] {
    for (int i = 0; i < 5; ++i) (*settings)->reload_if_changed();
    return outcomes.size();
  };
  EXPECT_EQ(look(), 0u);
  directory.write("web.yml", "rate_limitz: {}\n");
  EXPECT_EQ(look(), 1u);
  EXPECT_THAT(outcomes.back(), testing::HasSubstr("\"rate_limitz\""));
  EXPECT_EQ((*settings)->current()->config.rate_limit.burst, 3) << "the earlier settings stay";
  directory.write("web.yml", "rate_limit: {interval: 1h, burst: 4}\n");
  EXPECT_EQ(look(), 2u);
  EXPECT_EQ((*settings)->current()->config.rate_limit.burst, 4);
}

}  // namespace
}  // namespace gpuledger::http
