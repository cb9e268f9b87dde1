// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "attribute/books/engine.h"
#include "expose/expose.h"
#include "support/batch_builder.h"

// Tenants that come and go do not make a node too large to be scraped.
namespace gpuledger::bench {
namespace {

using gpuledger::testing::BatchBuilder;
using gpuledger::testing::pod_owner;

struct Scrape {
  std::string text;
  size_t series = 0;
};

Scrape scrape(const BatchBuilder& batch, Ledger ledger) {
  Cycle cycle;
  cycle.batch = batch.batch();
  cycle.ledger = std::move(ledger);
  Scrape made;
  made.text = expose::write_text(cycle, expose::ExposeOptions());
  for (size_t at = 0; at < made.text.size(); at = made.text.find('\n', at) + 1) made.series += made.text[at] != '#';
  return made;
}

// Four minutes of one tenant that starts forty short processes a second.
TEST(Churn, FortyProcessesASecondStayBelowTheLimitOfAScrape) {
  constexpr uint32_t kPerSecond = 40;
  constexpr int kScrapeInterval = 15;
  attribute::Engine engine((BookingRules()));
  Pid next = 1000;
  size_t most = 0;
  std::set<Pid> since_last_scrape;
  for (int second = 0; second < 240; ++second) {
    BatchBuilder batch(second);
    batch.gpu(0, second * 300'000LL);
    for (uint32_t i = 0; i < kPerSecond; ++i) {
      batch.process(next, 0.02, 0, pod_owner("churn"));
      since_last_scrape.insert(next++);
    }
    Ledger ledger = engine.advance(batch.batch(), batch.identities());
    if (second % kScrapeInterval != kScrapeInterval - 1) continue;
    const Scrape seen = scrape(batch, std::move(ledger));
    most = std::max(most, seen.series);
    for (const Pid pid : since_last_scrape) {
      ASSERT_NE(seen.text.find("my_gpu_process_active{pid=\"" + std::to_string(pid) + "\""), std::string::npos)
          << pid << " was never shown";
    }
    since_last_scrape.clear();
  }
  EXPECT_LT(most, 15'000u);
}

TEST(Churn, SeriesOfShortPodsEnd) {
  BookingRules rules;
  rules.owner_retention = std::chrono::hours(1);
  attribute::Engine engine(rules);
  size_t at_work = 0;
  size_t an_hour_later = 0;
  size_t at_first = 0;
  for (int second = 0; second < 1200 + 3610; ++second) {
    BatchBuilder batch(second);
    batch.gpu(0, second * 300'000LL);
    const int pod = second / 4;
    if (second < 1200) batch.process(static_cast<Pid>(1000 + pod), 1, 0, pod_owner("job-" + std::to_string(pod)));
    Ledger ledger = engine.advance(batch.batch(), batch.identities());
    if (second == 0) at_first = scrape(batch, std::move(ledger)).series;
    if (second == 1199) at_work = scrape(batch, std::move(ledger)).series;
    if (second == 1200 + 3609) an_hour_later = scrape(batch, std::move(ledger)).series;
  }
  EXPECT_GT(at_work, 600u) << "each of the 300 pods can be scraped";
  EXPECT_LE(an_hour_later, at_first + 3) << "one closed account is left of them";
}

}  // namespace
}  // namespace gpuledger::bench
