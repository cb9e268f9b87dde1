// SPDX-License-Identifier: Apache-2.0
#include "engine_steps.h"

namespace gpuledger::attribute {
namespace {

using testing::BatchBuilder;
using testing::pod_owner;

TEST(ProcessGauges, WhoOnlyDrawsIsNotIdleAndNoWaste) {
  Engine engine(rules());
  Ledger ledger;
  for (int second = 0; second <= 30; ++second) {
    BatchBuilder batch(second);
    batch.gpu(0, second * 124'000).process(1, 0, 0, pod_owner("desktop"));
    batch.last().compute = false;
    batch.last().graphics = true;
    batch.process(2, 0, 0, pod_owner("holder"));
    batch.last().graphics = true;  // and compute
    ledger = step(engine, batch);
  }
  EXPECT_TRUE(process(ledger, 1).only_draws());
  EXPECT_FALSE(process(ledger, 1).idle.evaluated);
  EXPECT_EQ(ledger.owners[0].idle_memory->count, 0u);
  EXPECT_FALSE(process(ledger, 2).only_draws());
  EXPECT_TRUE(process(ledger, 2).idle.idle);
  EXPECT_EQ(ledger.owners[1].idle_memory->count, 1u << 30);
}

BatchBuilder holding(double second, uint64_t one, std::optional<uint64_t> two) {
  BatchBuilder batch(second);
  batch.gpu(0, static_cast<int64_t>(second * 300'000)).process(1, 0.5, 0, pod_owner("train"));
  batch.last().memory = Bytes{one};
  if (two) {
    batch.process(2, 0.5, 0, pod_owner("train"));
    batch.last().memory = Bytes{*two};
  }
  return batch;
}

TEST(ProcessGauges, PeaksOfMemoryNeverFallAndAnOwnersIsOfOneMoment) {
  Engine engine(rules());
  (void)step(engine, holding(0, 100, std::nullopt));
  (void)step(engine, holding(1, 700, 100));
  (void)step(engine, holding(2, 200, 500));
  Ledger ledger = step(engine, holding(3, 50, 50));
  EXPECT_EQ(process(ledger, 1).memory_peak, Bytes{700});
  EXPECT_EQ(process(ledger, 2).memory_peak, Bytes{500});
  EXPECT_EQ(ledger.owners[0].memory_peak, Bytes{800}) << "700 and 100 together, not 700 and 500";
  ledger = step(engine, holding(4, 50, std::nullopt));
  EXPECT_FALSE(process(ledger, 2).active);
  EXPECT_FALSE(process(ledger, 2).memory);
  EXPECT_EQ(process(ledger, 2).memory_peak, Bytes{500});
  EXPECT_EQ(ledger.owners[0].memory_peak, Bytes{800});
}

TEST(ProcessGauges, APeakThatIsNotReportedIsNotKnown) {
  Engine engine(rules());
  Ledger ledger;
  for (int second = 0; second < 3; ++second) {
    BatchBuilder batch(second);
    batch.gpu(0, second * 300'000).process(1, 0.5);
    batch.last().memory.reset();
    ledger = step(engine, batch);
  }
  EXPECT_FALSE(process(ledger, 1).memory_peak);
  EXPECT_FALSE(ledger.owners[0].memory_peak);
}

TEST(ProcessGauges, VideoEnginesAreShownFromTheirFirstUseOn) {
  Engine engine(rules());
  const auto at = [&](int second, double encoder) {
    BatchBuilder batch(second);
    batch.gpu(0, second * 300'000).process(1, 0.5);
    batch.last().use.encoder = Ratio{encoder};
    return step(engine, batch);
  };
  EXPECT_FALSE(process(at(0, 0), 1).encoder);
  EXPECT_EQ(process(at(1, 0.4), 1).encoder, Ratio{0.4});
  const Ledger after = at(2, 0);
  EXPECT_EQ(process(after, 1).encoder, Ratio{0});
  EXPECT_FALSE(process(after, 1).decoder);
}

TEST(ProcessGauges, AnOwnerHasTheUserOfItsProcessesIfItIsOne) {
  Engine engine(rules());
  Ledger ledger;
  for (int second = 0; second < 3; ++second) {
    BatchBuilder batch(second);
    batch.gpu(0, second * 300'000).process(1, 0.5, 0, pod_owner("a")).process(2, 0.5, 0, pod_owner("a"));
    batch.process(3, 0.5, 0, pod_owner("b")).process(4, 0.5, 0, pod_owner("b"));
    batch.identity(1).uid = batch.identity(2).uid = batch.identity(3).uid = "1000";
    batch.identity(1).user_name = batch.identity(2).user_name = batch.identity(3).user_name = "ana";
    batch.identity(4).uid = "1001";
    ledger = step(engine, batch);
  }
  EXPECT_EQ(ledger.owners[0].uid, "1000");
  EXPECT_EQ(ledger.owners[0].user_name, "ana");
  EXPECT_EQ(ledger.owners[1].uid, "");
  EXPECT_EQ(ledger.owners[1].user_name, "");
  EXPECT_EQ(process(ledger, 4).identity.uid, "1001");
}

TEST(ProcessGauges, WhatThePrologWroteStaysWithTheJob) {
  Engine engine(rules());
  const Owner owner = pod_owner("a");
  const auto at = [&](int second, const JobFacts& job) {
    BatchBuilder batch(second);
    batch.gpu(0, second * 300'000).process(1, 0.5, 0, owner);
    batch.identity(1).job = job;
    const Ledger ledger = step(engine, batch);
    return ledger.owners.empty() ? OwnerAccount{} : ledger.owners[0];
  };
  JobFacts job{"physics", "gpu", 2, 940.0};
  EXPECT_TRUE(at(0, {}).job.empty());
  EXPECT_TRUE(at(1, {}).job.empty());
  EXPECT_EQ(at(2, job).job, job) << "the file came later";
  EXPECT_FALSE(at(3, job).gone_for);
  EXPECT_EQ(at(4, {}).job, job) << "the file is gone";
  BatchBuilder last(5), nobody(7);
  last.gpu(0, 5 * 300'000);
  nobody.gpu(0, 7 * 300'000);
  EXPECT_EQ(step(engine, last).owners.at(0).gone_for, std::chrono::seconds(0));
  const OwnerAccount left = step(engine, nobody).owners.at(0);
  EXPECT_EQ(left.job, job);
  EXPECT_EQ(left.gone_for, std::chrono::seconds(2));
  job.started = 1940.0;
  EXPECT_TRUE(at(8, job).job.restarted) << "requeued";
  EXPECT_EQ(at(9, job).job.started, 1940.0);
  EXPECT_TRUE(at(10, job).job.restarted);
}

}  // namespace
}  // namespace gpuledger::attribute
