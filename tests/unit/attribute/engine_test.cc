// SPDX-License-Identifier: Apache-2.0
#include "engine_steps.h"

namespace gpuledger::attribute {
namespace {

using testing::BatchBuilder;
using testing::pod_owner;

TEST(Engine, ExampleOfTheContract) {
  // 70 W for 10 s, A at 80 %, B at 20 %: A 560 J, B 140 J.
  Engine engine(rules());
  int64_t mj = 1'000'000;
  step(engine, BatchBuilder(0).gpu(0, mj).process(1, 0.8).process(2, 0.2));
  Ledger ledger;
  for (int second = 1; second <= 10; ++second) {
    mj += 70'000;
    ledger = step(engine, BatchBuilder(second).gpu(0, mj).process(1, 0.8).process(2, 0.2));
  }
  EXPECT_EQ(process(ledger, 1).booked.shared, Energy::millijoules(560'000));
  EXPECT_EQ(process(ledger, 2).booked.shared, Energy::millijoules(140'000));
  EXPECT_EQ(process(ledger, 1).booked.alone, Energy());
  EXPECT_EQ(process(ledger, 1).booked.gpu_time, std::chrono::seconds(8));
  EXPECT_EQ(process(ledger, 2).booked.gpu_time, std::chrono::seconds(2));
  EXPECT_EQ(ledger.devices[0].measured, Energy::millijoules(700'000));
}

TEST(Engine, AloneIsMeasuredSharedIsEstimatedAndBothOnlyGrow) {
  Engine engine(rules());
  step(engine, BatchBuilder(0).gpu(0, 0).process(1, 0.5));
  step(engine, BatchBuilder(1).gpu(0, 100'000).process(1, 0.5));
  step(engine, BatchBuilder(2).gpu(0, 200'000).process(1, 0.5).process(2, 0.5));
  const Ledger ledger = step(engine, BatchBuilder(3).gpu(0, 300'000).process(1, 0.5));  // 2 was there for a part
  EXPECT_EQ(process(ledger, 1).booked.alone, Energy::millijoules(100'000));
  EXPECT_EQ(process(ledger, 1).booked.shared, Energy::millijoules(150'000));
  const Ledger after = step(engine, BatchBuilder(4).gpu(0, 400'000).process(1, 0.5));
  EXPECT_EQ(process(after, 1).booked.alone, Energy::millijoules(200'000));
  EXPECT_EQ(process(after, 1).booked.shared, Energy::millijoules(150'000));
}

TEST(Engine, StandardErrorIsZeroAloneAndWideWhenShared) {
  BookingRules all_dynamic = rules();
  all_dynamic.idle_power = Power();
  Engine engine(all_dynamic);
  step(engine, BatchBuilder(0).gpu(0, 0).process(1, 0.5));
  const Ledger alone = step(engine, BatchBuilder(1).gpu(0, 100'000).process(1, 0.5));
  EXPECT_EQ(process(alone, 1).standard_error_joules, 0);
  Ledger shared;
  for (int second = 2; second <= 101; ++second) {
    shared = step(engine, BatchBuilder(second).gpu(0, second * 100'000).process(1, 0.5).process(2, 0.5));
  }
  // The truth may be all or nothing of the 10 kJ they shared: 5 kJ away from the books, within two errors.
  EXPECT_GT(2 * process(shared, 1).standard_error_joules, 5000);
  EXPECT_LT(process(shared, 1).standard_error_joules, 5200);
}

TEST(Engine, NoTicketInAFewIsNoProof) {
  BookingRules all_dynamic = rules();
  all_dynamic.idle_power = Power();
  Engine engine(all_dynamic);
  step(engine, BatchBuilder(0).gpu(0, 0).process(1, 0.9).process(2, 0));
  const Ledger ledger = step(engine, BatchBuilder(1).gpu(0, 100'000).process(1, 0.9).process(2, 0));
  EXPECT_GT(process(ledger, 1).standard_error_joules, 1);
  EXPECT_LT(process(ledger, 1).standard_error_joules, 30);
}

TEST(Engine, NobodyThereIsIdle) {
  Engine engine(rules());
  step(engine, BatchBuilder(0).gpu(0, 0));
  step(engine, BatchBuilder(1).gpu(0, 79'000));
  const Ledger ledger = step(engine, BatchBuilder(2).gpu(0, 158'000));
  EXPECT_EQ(reason(ledger, Reason::kIdle), Energy::millijoules(158'000));
  ASSERT_TRUE(ledger.devices[0].idle_power);
  EXPECT_EQ(*ledger.devices[0].idle_power, Power::watts(79));
}

TEST(Engine, WorkWithoutAWorkerIsUnseen) {
  Engine engine(rules());
  for (int second = 0; second < 3; ++second) {
    BatchBuilder builder(second);
    builder.gpu(0, second * 300'000).device().gpu_utilization = Ratio{0.9};
    const Ledger ledger = step(engine, builder);
    EXPECT_EQ(reason(ledger, Reason::kUnseen), Energy::millijoules(second == 2 ? 300'000 : 0));
  }
}

TEST(Engine, HoldersPayTogetherWhenNobodyWorks) {
  Engine engine(rules());
  step(engine, BatchBuilder(0).gpu(0, 0).process(1, 0).process(2, 0));
  const Ledger ledger = step(engine, BatchBuilder(1).gpu(0, 124'000).process(1, 0).process(2, 0));
  EXPECT_EQ(process(ledger, 1).booked.shared, Energy::millijoules(62'000));
  EXPECT_EQ(process(ledger, 2).booked.shared, Energy::millijoules(62'000));
}

TEST(Engine, StaticPowerSeparate) {
  BookingRules separate = rules(Attribution::kUtilization, StaticPower::kSeparate);
  separate.idle_power = Power::watts(80);
  Engine engine(separate);
  step(engine, BatchBuilder(0).gpu(0, 0).process(1, 0.9).process(2, 0.1));
  const Ledger ledger = step(engine, BatchBuilder(1).gpu(0, 480'000).process(1, 0.9).process(2, 0.1));
  EXPECT_EQ(reason(ledger, Reason::kStatic), Energy::millijoules(80'000));
  EXPECT_EQ(process(ledger, 1).booked.shared, Energy::millijoules(360'000));
  EXPECT_EQ(process(ledger, 2).booked.shared, Energy::millijoules(40'000));
}

TEST(Engine, StaticPowerEqual) {
  BookingRules equal = rules(Attribution::kUtilization, StaticPower::kEqual);
  equal.idle_power = Power::watts(80);
  Engine engine(equal);
  step(engine, BatchBuilder(0).gpu(0, 0).process(1, 0.9).process(2, 0.1));
  const Ledger ledger = step(engine, BatchBuilder(1).gpu(0, 480'000).process(1, 0.9).process(2, 0.1));
  EXPECT_EQ(process(ledger, 1).booked.shared, Energy::millijoules(400'000));
  EXPECT_EQ(process(ledger, 2).booked.shared, Energy::millijoules(80'000));
}

TEST(Engine, MeasuredOnlyChargesNobodyForSharedTime) {
  Engine engine(rules(Attribution::kMeasuredOnly));
  step(engine, BatchBuilder(0).gpu(0, 0).process(1, 0.5));
  step(engine, BatchBuilder(1).gpu(0, 100'000).process(1, 0.5));
  const Ledger ledger = step(engine, BatchBuilder(2).gpu(0, 300'000).process(1, 0.5).process(2, 0.5));
  EXPECT_EQ(process(ledger, 1).booked.total(), Energy::millijoules(100'000));
  EXPECT_EQ(process(ledger, 2).booked.total(), Energy());
  EXPECT_EQ(reason(ledger, Reason::kUnseen), Energy::millijoules(200'000));
}

TEST(Engine, PidReuseIsAnotherProcess) {
  Engine engine(rules());
  step(engine, BatchBuilder(0).gpu(0, 0).process(7, 0.5, 100));
  step(engine, BatchBuilder(1).gpu(0, 100'000).process(7, 0.5, 100));
  const Ledger ledger = step(engine, BatchBuilder(2).gpu(0, 200'000).process(7, 0.5, 900));
  ASSERT_EQ(ledger.processes.size(), 2u);
  EXPECT_FALSE(ledger.processes[0].active);
  EXPECT_TRUE(ledger.processes[1].active);
  EXPECT_EQ(ledger.processes[1].identity.key.start_ticks, 900u);
  EXPECT_EQ(ledger.processes[1].booked.total(), Energy::millijoules(100'000)) << "its tickets are its own";
}

TEST(Engine, TicketOfOneJustGoneIsBookedToIt) {
  Engine engine(rules());
  step(engine, BatchBuilder(0).gpu(0, 0).process(1, 0).process(2, 1));
  const Ledger ledger = step(engine, BatchBuilder(1).gpu(0, 100'000).process(1, 0).gone_process(2, 0.8));
  EXPECT_EQ(process(ledger, 2).booked.shared, Energy::millijoules(100'000));
  EXPECT_FALSE(process(step(engine, BatchBuilder(2).gpu(0, 200'000).process(1, 0)), 2).active);
}

TEST(Engine, ShortLifeBetweenTwoLooksIsBookedToItsPid) {
  Engine engine(rules());
  step(engine, BatchBuilder(0).gpu(0, 0));
  const Ledger ledger = step(engine, BatchBuilder(1).gpu(0, 100'000).gone_process(99, 0.4));
  EXPECT_EQ(process(ledger, 99).booked.alone, Energy::millijoules(100'000));
  EXPECT_FALSE(process(ledger, 99).active);
  EXPECT_EQ(process(ledger, 99).identity.name, "unknown");
}

TEST(Engine, ForgottenAfterRetentionButTheOwnerKeepsTheEnergy) {
  BookingRules short_memory = rules();
  short_memory.retention = std::chrono::seconds(5);
  Engine engine(short_memory);
  step(engine, BatchBuilder(0).gpu(0, 0).process(1, 1, 0, pod_owner("train")));
  step(engine, BatchBuilder(1).gpu(0, 100'000).process(1, 1, 0, pod_owner("train")));
  const Ledger retained = step(engine, BatchBuilder(6).gpu(0, 500'000));
  EXPECT_FALSE(process(retained, 1).active);
  EXPECT_FALSE(process(retained, 1).sm) << "gauges of the dead are absent";
  EXPECT_TRUE(retained.owners[0].idle_memory) << "a worker that restarts does not make it flap";
  const Ledger after = step(engine, BatchBuilder(12).gpu(0, 600'000));
  EXPECT_TRUE(after.processes.empty());
  ASSERT_EQ(after.owners.size(), 1u);
  EXPECT_EQ(after.owners[0].owner.pod, "train");
  EXPECT_EQ(after.owners[0].booked.alone, Energy::millijoules(500'000));
  EXPECT_FALSE(after.owners[0].idle_memory) << "nobody of it is there to hold any";
}

TEST(Engine, SeriesOfAReusedPidDoesNotFallWhenTheElderIsForgotten) {
  BookingRules short_memory = rules();
  short_memory.retention = std::chrono::seconds(5);
  Engine engine(short_memory);
  const auto total = [](const Ledger& ledger) {
    Energy sum;
    for (const ProcessAccount& account : ledger.processes) sum += account.booked.total();
    return sum;
  };
  Energy highest;
  for (int second = 0; second < 20; ++second) {
    // The same pid and name, begun anew at 4 s.
    const Ledger ledger = step(engine, BatchBuilder(second).gpu(0, second * 100'000).process(7, 1, second < 4 ? 1 : 2));
    EXPECT_GE(total(ledger), highest) << second;
    highest = total(ledger);
  }
  EXPECT_EQ(highest, Energy::millijoules(1'900'000));
}

TEST(Engine, NobodyLivesForEverOnALostGpu) {
  BookingRules short_memory = rules();
  short_memory.retention = std::chrono::seconds(5);
  short_memory.owner_retention = std::chrono::seconds(10);
  Engine engine(short_memory);
  step(engine, BatchBuilder(0).gpu(0, 0).process(1, 1));
  step(engine, BatchBuilder(1).gpu(0, 100'000).process(1, 1));
  Ledger ledger;
  for (int second = 2; second < 12; ++second) ledger = step(engine, BatchBuilder(second));
  EXPECT_EQ(ledger.processes.size(), 1u);
  EXPECT_EQ(ledger.owners.size(), 1u);
  for (int second = 12; second < 20; ++second) ledger = step(engine, BatchBuilder(second));
  EXPECT_TRUE(ledger.processes.empty());
  EXPECT_TRUE(ledger.owners.empty());
  EXPECT_EQ(ledger.closed.size(), 1u);
}

TEST(Engine, WhoLeavesWhileUtilizationFailsIsNotLeftOut) {
  Engine engine(rules());
  step(engine, BatchBuilder(0).gpu(0, 0).process(1, 0.5).process(2, 0.5));
  BatchBuilder failed(1);
  failed.gpu(0, 200'000).process(1, 0).device().utilization = UtilizationState::kFailed;
  step(engine, failed);
  const Ledger ledger = step(engine, BatchBuilder(2).gpu(0, 400'000).process(1, 0).gone_process(2, 0.9));
  EXPECT_EQ(process(ledger, 2).booked.shared, Energy::millijoules(400'000));
}

TEST(Engine, ANameThatComesLaterOpensANewAccount) {
  Engine engine(rules());
  step(engine, BatchBuilder(0).gpu(0, 0).process(1, 1));
  step(engine, BatchBuilder(1).gpu(0, 100'000).process(1, 1));
  const Ledger ledger = step(engine, BatchBuilder(2).gpu(0, 300'000).process(1, 1, 0, pod_owner("train")));
  ASSERT_EQ(ledger.processes.size(), 2u);
  ASSERT_EQ(ledger.owners.size(), 2u);
  EXPECT_EQ(ledger.owners[0].owner.kind, OwnerKind::kPod);
  EXPECT_EQ(ledger.owners[0].booked.alone, Energy::millijoules(200'000)) << "alone all the time";
  EXPECT_EQ(ledger.owners[1].booked.alone, Energy::millijoules(100'000));
}

TEST(Engine, DriverReloadKeepsTheBooksAndCountsOn) {
  Engine engine(rules());
  step(engine, BatchBuilder(0).gpu(0, 9'000'000).process(1, 1));
  step(engine, BatchBuilder(1).gpu(0, 9'100'000).process(1, 1));
  step(engine, BatchBuilder(2));  // driver away
  step(engine, BatchBuilder(3).gpu(0, 50'000));
  step(engine, BatchBuilder(4).gpu(0, 60'000));
  const Ledger ledger = step(engine, BatchBuilder(5).gpu(0, 70'000));
  EXPECT_EQ(ledger.devices[0].measured, Energy::millijoules(170'000));
}

TEST(Engine, MpsServerIsKnownByItsNameOrByBeingNoClient) {
  for (const char* name : {"nvidia-cuda-mps", "recorded"}) {
    Engine engine(rules());
    Ledger ledger;
    for (int second = 0; second < 2; ++second) {
      BatchBuilder batch(second);
      batch.gpu(0, second * 300'000).process(1, 0.9).identity(1).name = name;
      batch.process(2, 0).last().mps_client = true;
      batch.process(3, 0).last().mps_client = true;
      ledger = step(engine, batch);
    }
    EXPECT_EQ(process(ledger, 1).booked.total(), Energy()) << name;
    EXPECT_EQ(process(ledger, 2).booked.shared, Energy::millijoules(150'000)) << name;
    EXPECT_EQ(process(ledger, 3).booked.shared, Energy::millijoules(150'000)) << name;
  }
}

TEST(Engine, MoreThanTheLimitAllowsIsAnAnomaly) {
  Engine engine(rules());
  step(engine, BatchBuilder(0).gpu(0, 0).process(1, 1));
  const Ledger ledger = step(engine, BatchBuilder(1).gpu(0, 1'300'000).process(1, 1));
  EXPECT_EQ(reason(ledger, Reason::kAnomaly), Energy::millijoules(1'300'000));
  EXPECT_EQ(process(ledger, 1).booked.total(), Energy());
}

TEST(Engine, FailedUtilizationWaitsForTheNextOne) {
  Engine engine(rules());
  step(engine, BatchBuilder(0).gpu(0, 0).process(1, 0.5).process(2, 0.5));
  BatchBuilder failed(1);
  failed.gpu(0, 100'000).process(1, 0).process(2, 0).device().utilization = UtilizationState::kFailed;
  EXPECT_EQ(step(engine, failed).devices[0].measured, Energy());
  const Ledger ledger = step(engine, BatchBuilder(2).gpu(0, 200'000).process(1, 0.9).process(2, 0.1));
  EXPECT_EQ(process(ledger, 1).booked.shared, Energy::millijoules(180'000));
}

TEST(Engine, FailedUtilizationForLongIsUnseen) {
  Engine engine(rules());
  step(engine, BatchBuilder(0).gpu(0, 0).process(1, 0.5).process(2, 0.5));
  Ledger ledger;
  for (int second = 1; second <= 10; ++second) {
    BatchBuilder failed(second);
    failed.gpu(0, second * 100'000).process(1, 0).process(2, 0).device().utilization = UtilizationState::kFailed;
    ledger = step(engine, failed);
  }
  EXPECT_EQ(reason(ledger, Reason::kUnseen), Energy::millijoules(1'000'000));
}

TEST(Engine, IdleHolderIsFoundByTimeAndWeighsOnItsOwner) {
  Engine engine(rules());
  Ledger ledger;
  for (int second = 0; second <= 30; ++second) {
    ledger = step(engine, BatchBuilder(second)
                              .gpu(0, second * 124'000)
                              .process(1, second < 3 ? 0.5 : 0, 0, pod_owner("notebook"))
                              .process(2, 0.5));
  }
  EXPECT_TRUE(process(ledger, 1).idle.idle);
  EXPECT_EQ(process(ledger, 1).idle.idle_for, std::chrono::seconds(28));
  EXPECT_FALSE(process(ledger, 2).idle.idle);
  ASSERT_TRUE(ledger.owners[0].idle_memory);
  EXPECT_EQ(ledger.owners[0].idle_memory->count, 1u << 30);
}

TEST(Engine, MigProcessesPayByTheirSlices) {
  Engine engine(rules());
  const auto batch = [](double at, int64_t mj) {
    BatchBuilder builder(at);
    builder.gpu(0, mj);
    MigInstance small;
    small.uuid = "MIG-a";
    small.id = {7, 0};
    small.compute_slices = 1;
    MigInstance large = small;
    large.uuid = "MIG-b";
    large.id = {2, 0};
    large.compute_slices = 3;
    builder.description().mig = {small, large};
    builder.device().utilization = UtilizationState::kUnsupported;
    builder.device().gpu_utilization.reset();
    builder.process(1, 0).last().mig = small.id;
    builder.process(2, 0).last().mig = large.id;
    return builder;
  };
  step(engine, batch(0, 0));
  const Ledger ledger = step(engine, batch(1, 200'000));
  EXPECT_EQ(process(ledger, 1).booked.shared, Energy::millijoules(50'000));
  EXPECT_EQ(process(ledger, 2).booked.shared, Energy::millijoules(150'000));
  EXPECT_FALSE(process(ledger, 2).booked.gpu_time) << "nobody says how long it worked";
  EXPECT_EQ(process(ledger, 2).mig->uuid, "MIG-b");
  EXPECT_FALSE(process(ledger, 1).sm);
  EXPECT_FALSE(process(ledger, 1).idle.evaluated);
}

TEST(Engine, MigActivityTellsWhoWorked) {
  Engine engine(rules());
  const auto batch = [](double at, int64_t mj) {
    BatchBuilder builder(at);
    builder.gpu(0, mj);
    MigInstance one;
    one.uuid = "MIG-a";
    one.id = {7, 0};
    one.compute_slices = 2;
    MigInstance two = one;
    two.uuid = "MIG-b";
    two.id = {2, 0};
    builder.description().mig = {one, two};
    builder.device().utilization = UtilizationState::kUnsupported;
    builder.device().gpu_utilization.reset();
    builder.device().instance_activity[7].parts[Activity::kSm] = Ratio{0.9};
    builder.device().instance_activity[2].parts[Activity::kSm] = Ratio{0};
    builder.process(1, 0).last().mig = one.id;
    builder.process(2, 0).last().mig = two.id;
    return builder;
  };
  step(engine, batch(0, 0));
  const Ledger ledger = step(engine, batch(1, 300'000));
  EXPECT_EQ(process(ledger, 1).booked.shared, Energy::millijoules(300'000));
  EXPECT_EQ(process(ledger, 2).booked.shared, Energy());
}

TEST(Engine, ProcessOnTwoGpusHasTwoAccounts) {
  Engine engine(rules());
  step(engine, BatchBuilder(0).gpu(0, 0).process(1, 1).gpu(1, 0).process(1, 1));
  const Ledger ledger = step(engine, BatchBuilder(1).gpu(0, 100'000).process(1, 1).gpu(1, 300'000).process(1, 1));
  ASSERT_EQ(ledger.processes.size(), 2u);
  EXPECT_EQ(ledger.processes[0].booked.alone, Energy::millijoules(100'000));
  EXPECT_EQ(ledger.processes[1].booked.alone, Energy::millijoules(300'000));
}

TEST(Engine, XidsAreCounted) {
  Engine engine(rules());
  BatchBuilder builder(0);
  builder.gpu(0, 0).device().xids = {79, 48, 79};
  const Ledger ledger = step(engine, builder);
  EXPECT_EQ(ledger.devices[0].xids.at(79), 2u);
  EXPECT_EQ(ledger.devices[0].xids.at(48), 1u);
}

// An engine that lies: each number would be two more series, for good.
TEST(Engine, XidsOfEverOtherNumbersAreLeftOut) {
  Engine engine(rules());
  BatchBuilder builder(0);
  auto& xids = builder.gpu(0, 0).device().xids;
  for (uint64_t xid = 1; xid <= 1000; ++xid) xids.push_back(xid);
  const Ledger ledger = step(engine, builder);
  EXPECT_EQ(ledger.devices[0].xids.size(), 64u);
  EXPECT_EQ(ledger.devices[0].xid_seen.size(), 64u);
  EXPECT_EQ(ledger.devices[0].refused_readings, 936u);
  BatchBuilder later(1);
  later.gpu(0, 0).device().xids = {64, 65};
  EXPECT_EQ(step(engine, later).devices[0].xids.at(64), 2u) << "a known one still counts";
}

TEST(Engine, TheLastXidIsTheLastOfTheLastBatch) {
  Engine engine(rules());
  BatchBuilder builder(7);
  builder.gpu(0, 0).device().xids = {79, 48, 13};
  (void)step(engine, builder);
  BatchBuilder later(9);
  later.gpu(0, 0).device().xids = {48};
  const Ledger ledger = step(engine, later);
  const auto& seen = ledger.devices[0].xid_seen;
  EXPECT_EQ(seen.at(79), builder.batch().at.wall);
  EXPECT_GT(seen.at(13), seen.at(79)) << "it came after it";
  EXPECT_EQ(seen.at(48), later.batch().at.wall);
}

TEST(Engine, TheHardwareCounterIsWhatWasBeforeAndWhatWasMeasured) {
  Engine engine(rules());
  const auto shows = [](const Ledger& ledger) {
    return *ledger.devices[0].counted_before + ledger.devices[0].measured;
  };
  EXPECT_FALSE(step(engine, BatchBuilder(0).gpu(0, 5'000'000)).devices[0].counted_before) << "it may be false";
  EXPECT_EQ(shows(step(engine, BatchBuilder(1).gpu(0, 5'100'000))), Energy::millijoules(5'100'000));
  // The driver was reloaded: the hardware begins anew, this goes on.
  step(engine, BatchBuilder(2).gpu(0, 50'000));
  step(engine, BatchBuilder(3).gpu(0, 100'000));
  EXPECT_EQ(shows(step(engine, BatchBuilder(4).gpu(0, 150'000))), Energy::millijoules(5'250'000));
}

TEST(Engine, OfAMigInstanceEachPaysByTheTimeItWasThere) {
  Engine engine(rules());
  const auto at = [](double second, int64_t counter) {
    BatchBuilder batch(second);
    batch.gpu(0, counter);
    MigInstance slice;
    slice.uuid = "MIG-a";
    slice.id = {1, 0};
    slice.compute_slices = 3;
    batch.description().mig = {slice};
    batch.device().utilization = UtilizationState::kUnsupported;
    batch.process(1, 0).last().mig = slice.id;
    return batch;
  };
  step(engine, at(0, 0));
  BatchBuilder batch = at(1, 500'000);
  batch.process(2, 0).last().mig = MigId{1, 0};
  batch.last().listed = false;
  batch.last().came = BatchBuilder::to_ns(0.5);
  batch.last().left = BatchBuilder::to_ns(0.75);
  const Ledger ledger = step(engine, batch);
  EXPECT_NEAR(process(ledger, 1).booked.shared.joules(), 400, 1);
  EXPECT_NEAR(process(ledger, 2).booked.shared.joules(), 100, 1);
}

TEST(Engine, EveryStepSaysWhoPaidForIt) {
  Engine engine(rules());
  (void)step(engine, BatchBuilder(0).gpu(0, 0).process(1, 0.8).process(2, 0.2));
  for (int i = 1; i < 4; ++i) {
    const Ledger ledger = step(engine, BatchBuilder(i).gpu(0, i * 100'000).process(1, 0.8).process(2, 0.2));
    EXPECT_EQ(ledger.devices[0].last_step, Energy::millijoules(100'000));
    ASSERT_EQ(ledger.processes.size(), 2u);
    EXPECT_EQ(ledger.processes[0].last_step + ledger.processes[1].last_step, Energy::millijoules(100'000));
  }
  const Ledger idle = step(engine, BatchBuilder(4).gpu(0, 400'000));
  const Ledger gone = step(engine, BatchBuilder(5).gpu(0, 500'000));
  ASSERT_EQ(gone.processes.size(), 2u);
  for (const ProcessAccount& process : gone.processes) EXPECT_EQ(process.last_step, Energy()) << "somebody long gone";
}

TEST(Engine, NobodyIsCalledIdleBehindAnMpsServerThatWorks) {
  Engine engine{BookingRules{}};
  const auto at = [&](int second, double server) {
    BatchBuilder batch(second);
    batch.gpu(0, 1000 * second).process(1, server);
    batch.identity(1).name = "nvidia-cuda-mps";
    batch.process(2, 0).last().mps_client = true;
    return engine.advance(batch.batch(), batch.identities());
  };
  Ledger ledger;
  for (int second = 0; second < 30; ++second) ledger = at(second, 0.8);
  ASSERT_EQ(ledger.processes.size(), 2u);
  EXPECT_FALSE(ledger.processes[1].idle.evaluated);
  EXPECT_EQ(ledger.processes[1].sm, std::nullopt) << "its work shows as the server's";
  for (int second = 30; second < 60; ++second) ledger = at(second, 0);
  EXPECT_TRUE(ledger.processes[1].idle.idle) << "when the server rests, so do its clients";
  EXPECT_EQ(ledger.processes[1].sm->value, 0);
}

}  // namespace
}  // namespace gpuledger::attribute
