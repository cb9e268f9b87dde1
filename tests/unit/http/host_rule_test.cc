// SPDX-License-Identifier: Apache-2.0
#include "http/host_rule.h"

#include <gtest/gtest.h>

namespace gpuledger::http {
namespace {

TEST(HostRule, LetsBrowsersComeByNamesThatNobodyOnTheInternetHas) {
  const HostRule rule({"GPUs.example.org."}, "node-7.example.org");
  for (const char* host :
       {"127.0.0.1", "10.0.0.7:9400", "[fd00::1]:9400", "[::1]", "localhost:9400", "page.localhost", "gpu-ledger",
        "gpu-ledger.monitoring.svc:9400", "gpu-ledger.monitoring.svc.cluster.local:9400", "gpus.example.org",
        "GPUS.EXAMPLE.ORG:443", "gpus.example.org.", "node-7.example.org:9400", "node-7:9400", ""})
    EXPECT_TRUE(rule.allows(host)) << host;
  for (const char* host : {"evil.example.com:9400", "example.org", "a.gpus.example.org", "127.0.0.1.example.com",
                           "localhost.example.com", "svc.example.com", "1.2.3", "[fd00::1.example.com"})
    EXPECT_EQ(rule.allows(host), std::string_view(host).starts_with('[')) << host;
  EXPECT_TRUE(HostRule({"*"}, "").allows("evil.example.com"));
}

TEST(HostRule, KnowsBrowsersByTheirHeaders) {
  for (const char* name : {"Accept-Language", "ORIGIN", "referer", "Sec-Fetch-Site", "sec-ch-ua"})
    EXPECT_TRUE(is_browsers_header(name)) << name;
  for (const char* name : {"Accept", "Accept-Encoding", "User-Agent", "X-Prometheus-Scrape-Timeout-Seconds", "Host",
                           "Authorization", "Traceparent", "X-Forwarded-For"})
    EXPECT_FALSE(is_browsers_header(name)) << name;
}

}  // namespace
}  // namespace gpuledger::http
