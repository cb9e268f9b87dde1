// SPDX-License-Identifier: Apache-2.0
// Time when nobody looked, readings that come late, and processes that were hardly seen.
#include "attribute/state/state_text.h"
#include "engine_steps.h"

namespace gpuledger::attribute {
namespace {

using testing::BatchBuilder;

TEST(Engine, LostGpuKeepsItsBooksAndTheGapIsOfThoseWhoLivedThroughIt) {
  Engine engine(rules());
  step(engine, BatchBuilder(0).gpu(0, 0).process(1, 1));
  step(engine, BatchBuilder(1).gpu(0, 100'000).process(1, 1));
  BatchBuilder lost(2);
  lost.gpu(0, 0);
  lost.device().up = false;
  lost.device().energy_counter.reset();
  const Ledger down = step(engine, lost);
  EXPECT_FALSE(down.devices[0].up);
  EXPECT_EQ(down.devices[0].measured, Energy::millijoules(100'000));
  EXPECT_TRUE(process(down, 1).active);
  EXPECT_FALSE(process(down, 1).memory);
  const Ledger back = step(engine, BatchBuilder(40).gpu(0, 4'000'000).process(1, 1).process(2, 1));
  EXPECT_EQ(reason(back, Reason::kExporterDown), Energy());
  EXPECT_EQ(process(back, 1).booked.shared, Energy::millijoules(3'900'000));
  EXPECT_EQ(process(back, 2).booked.total(), Energy());
}

// However long --metric-retention is: its processes are still candidates when it answers again, as after a restart.
TEST(Engine, AGpuLostForLongerThanTheRetentionIsBookedAsARestartIs) {
  BookingRules short_memory = rules();
  short_memory.retention = std::chrono::seconds(5);
  testing::NeverFalls counters;
  const auto before = [](Engine& engine) {
    step(engine, BatchBuilder(0).gpu(0, 0).process(1, 1).process(2, 1).process(3, 1));
    return step(engine, BatchBuilder(1).gpu(0, 300'000).process(1, 1).process(2, 1).process(3, 1));
  };
  const BatchBuilder after = BatchBuilder(61).gpu(0, 18'300'000).process(1, 1).process(2, 1).process(4, 1);
  Engine lost(short_memory);
  lost.restore({}, "boot");
  counters.check(before(lost));
  const EngineState left = lost.state();
  for (int second = 2; second <= 60; ++second) {
    const Ledger down = step(lost, BatchBuilder(second));
    counters.check(down);
    ASSERT_EQ(down.processes.size(), 3u) << second;
    EXPECT_EQ(process(down, 1).active, second <= 7) << second << ": after the retention nobody knows";
    EXPECT_EQ(process(down, 1).gone_for.has_value(), second > 7) << second;
  }
  const Ledger ledger = step(lost, after);
  counters.check(ledger);
  Engine restarted(short_memory);
  restarted.restore(left, "boot");
  const Ledger other = step(restarted, after);
  EXPECT_EQ(reason(ledger, Reason::kExporterDown), Energy());
  EXPECT_EQ(process(ledger, 1).booked.shared + process(ledger, 2).booked.shared + process(ledger, 3).booked.shared,
            Energy::millijoules(18'300'000));
  EXPECT_TRUE(process(ledger, 1).active);
  EXPECT_EQ(process(ledger, 3).gone_for, Nanoseconds(0)) << "its retention begins when the GPU answers";
  for (const Pid pid : {1, 2, 3, 4}) {
    EXPECT_EQ(process(ledger, pid).booked.shared, process(other, pid).booked.shared) << pid;
  }
}

// A GPU that answers again, but not yet for its energy counter: who is new then was not there before.
TEST(Engine, WhoCameBeforeTheCounterIsReadAgainDoesNotPayForTheGap) {
  for (const bool restart : {false, true}) {
    Engine engine(rules());
    engine.restore({}, "boot");
    step(engine, BatchBuilder(0).gpu(0, 0).process(1, 1));
    step(engine, BatchBuilder(1).gpu(0, 300'000).process(1, 1));
    if (restart) {
      const EngineState left = engine.state();
      engine = Engine(rules());
      engine.restore(left, "boot");
    } else {
      step(engine, BatchBuilder(2));
    }
    BatchBuilder silent(40);
    silent.gpu(0, 0).process(1, 1).process(2, 1);
    silent.device().energy_counter.reset();
    step(engine, silent);
    const Ledger ledger = step(engine, BatchBuilder(41).gpu(0, 12'300'000).process(1, 1).process(2, 1));
    EXPECT_EQ(process(ledger, 1).booked.shared, Energy::millijoules(12'000'000)) << restart;
    EXPECT_EQ(process(ledger, 2).booked.total(), Energy()) << restart;
  }
}

// The same for a lost GPU and over a restart.
class Gap : public ::testing::TestWithParam<bool> {
 protected:
  Gap() { engine_.restore({}, "boot"); }
  void begin() {
    if (GetParam()) {
      const EngineState left = *parse_state(write_state(engine_.state()));
      engine_ = Engine(rules());
      engine_.restore(left, "boot");
    } else {
      for (int second = 1; second < 5; ++second) step(engine_, BatchBuilder(second));
    }
  }
  Engine engine_{rules()};
};
INSTANTIATE_TEST_SUITE_P(LostOrRestarted, Gap, ::testing::Bool());

// Nor does a name that is not known again yet, with the counter unread, take the gap from the process.
TEST_P(Gap, ANameThatComesLateCostsTheProcessNothing) {
  const Owner pod = testing::pod_owner("train");
  Owner nameless;
  nameless.kind = OwnerKind::kPod;
  nameless.pod_uid = pod.pod_uid;
  step(engine_, BatchBuilder(0).gpu(0, 0).process(1, 1, 0, pod));
  begin();
  BatchBuilder silent(30);
  silent.gpu(0, 0).process(1, 1, 0, nameless);
  silent.device().energy_counter.reset();
  step(engine_, silent);
  const Ledger ledger = step(engine_, BatchBuilder(31).gpu(0, 9'000'000).process(1, 1, 0, nameless));
  EXPECT_EQ(reason(ledger, Reason::kExporterDown), Energy());
  ASSERT_EQ(ledger.owners.size(), 1u);
  EXPECT_EQ(ledger.owners[0].owner, pod);
  EXPECT_EQ(ledger.owners[0].booked.shared, Energy::millijoules(9'000'000));
}

// The driver's last samples still name a process that ended in the gap. It pays neither for the gap nor for the time
// after it, when nobody was there.
TEST_P(Gap, WhoEndedInItPaysForNothingAfterIt) {
  for (const bool stranger : {false, true}) {  // known to have ended, or in the map without a start time
    engine_ = Engine(rules());
    engine_.restore({}, "boot");
    step(engine_, BatchBuilder(0).gpu(0, 0).process(1, 1));
    begin();
    BatchBuilder news(5);
    news.gpu(0, 300'000).gone_process(1, 0.8);
    if (stranger) news.identity(1).key.pid = 1;
    Ledger ledger = step(engine_, news);
    EXPECT_EQ(reason(ledger, Reason::kExporterDown), Energy::millijoules(300'000));
    EXPECT_FALSE(process(ledger, 1).active);
    ledger = step(engine_, BatchBuilder(6).gpu(0, 350'000));
    EXPECT_EQ(reason(ledger, Reason::kIdle), Energy::millijoules(50'000));
    ASSERT_EQ(ledger.processes.size(), 1u);
    EXPECT_EQ(process(ledger, 1).booked.total(), Energy());
  }
}

// A stopped program, a frozen machine: the books of a stall are those of a restart of the same length.
TEST(Engine, AStallIsBookedAsARestartIs) {
  const auto before = [](Engine& engine) {
    step(engine, BatchBuilder(0).gpu(0, 0).process(1, 1).process(2, 1).process(3, 1));
    step(engine, BatchBuilder(1).gpu(0, 300'000).process(1, 1).process(2, 1).process(3, 1));
  };
  const BatchBuilder after = BatchBuilder(61).gpu(0, 18'300'000).process(1, 1).process(2, 1).process(4, 1);
  Engine stalled(rules());
  stalled.restore({}, "boot");
  before(stalled);
  const EngineState left = stalled.state();
  const Ledger ledger = step(stalled, after);
  Engine restarted(rules());
  restarted.restore(left, "boot");
  const Ledger other = step(restarted, after);
  EXPECT_EQ(reason(ledger, Reason::kExporterDown), Energy());
  EXPECT_EQ(process(ledger, 1).booked.shared + process(ledger, 2).booked.shared + process(ledger, 3).booked.shared,
            Energy::millijoules(18'300'000));
  EXPECT_EQ(process(ledger, 4).booked.total(), Energy());
  EXPECT_GT(process(ledger, 1).standard_error_joules, 1000);
  for (const Pid pid : {1, 2, 3, 4}) {
    EXPECT_EQ(process(ledger, pid).booked.shared, process(other, pid).booked.shared) << pid;
    EXPECT_EQ(process(ledger, pid).booked.alone, process(other, pid).booked.alone) << pid;
  }
}

TEST(Engine, OfAStallNothingIsMeasured) {
  Engine engine(rules());
  step(engine, BatchBuilder(0).gpu(0, 0).process(1, 1));
  const Ledger ledger = step(engine, BatchBuilder(60).gpu(0, 24'000'000).process(1, 1));
  EXPECT_EQ(process(ledger, 1).booked.shared, Energy::millijoules(24'000'000));
  EXPECT_EQ(process(ledger, 1).booked.alone, Energy());
  EXPECT_GT(process(ledger, 1).standard_error_joules, 100) << "somebody may have come and gone";
  BookingRules measured = rules();
  measured.attribution = Attribution::kMeasuredOnly;
  Engine strict(measured);
  step(strict, BatchBuilder(0).gpu(0, 0).process(1, 1));
  EXPECT_EQ(reason(step(strict, BatchBuilder(60).gpu(0, 6'000'000).process(1, 1)), Reason::kExporterDown),
            Energy::millijoules(6'000'000));
}

// A search for GPUs that takes long, or a call that waits: the joules are of the time they were read at.
TEST(Engine, ALateReadingIsOfItsOwnTime) {
  Engine engine(rules());
  const auto late = [](double batch_at, double read_at, int64_t counter) {
    BatchBuilder batch(batch_at);
    batch.gpu(0, counter).process(1, 1);
    batch.device().read_at = Timestamp{BatchBuilder::to_ns(read_at), BatchBuilder::to_ns(1'700'000'000 + read_at)};
    return batch;
  };
  step(engine, late(0, 0, 0));
  step(engine, late(1, 1, 650'000));
  const Ledger ledger = step(engine, late(2, 2.7, 1'755'000));  // 650 W
  EXPECT_EQ(reason(ledger, Reason::kAnomaly), Energy());
  EXPECT_EQ(process(ledger, 1).booked.alone, Energy::millijoules(1'755'000));
}

// A sample of who worked comes after the short job has left: its account is the one it had.
TEST(Engine, LateNewsOfAShortJobGoesToItsOwner) {
  Engine engine(rules());
  step(engine, BatchBuilder(0).gpu(0, 0));
  BatchBuilder came(1);
  came.gpu(0, 100'000).process(7, 0.4, 0, testing::pod_owner("short"));
  came.last().listed = false;
  came.last().came = BatchBuilder::to_ns(0.3);
  came.last().left = BatchBuilder::to_ns(0.8);
  step(engine, came);
  BatchBuilder news(2);
  news.gpu(0, 200'000).process(7, 0.1);
  news.last().listed = false;
  news.identity(7) = {};  // by then nobody knows it any more
  news.identity(7).key.pid = 7;
  news.identity(7).owner.kind = OwnerKind::kUnknown;
  const Ledger ledger = step(engine, news);
  ASSERT_EQ(ledger.processes.size(), 1u);
  EXPECT_EQ(process(ledger, 7).booked.total(), Energy::millijoules(200'000));
  // Much later the same pid is somebody else, whom nobody could read.
  step(engine, BatchBuilder(60).gpu(0, 300'000));
  const Ledger later = step(engine, BatchBuilder(61).gpu(0, 400'000).gone_process(7, 0.1));
  ASSERT_EQ(later.owners.size(), 2u);
  EXPECT_EQ(later.owners[1].owner.kind, OwnerKind::kUnknown);
}

BatchBuilder blind(double at, int64_t counter) {
  BatchBuilder batch(at);
  batch.gpu(0, counter);
  batch.device().utilization = UtilizationState::kUnsupported;
  return batch;
}

// By DCGM alone nobody says who works, but the lists say who was there when.
TEST(Engine, WhoTookTurnsPaysByTime) {
  Engine engine(rules());
  step(engine, blind(0, 0).process(1, 0));
  step(engine, blind(1, 300'000).process(1, 0));
  BatchBuilder change = blind(2, 600'000).process(1, 0).process(2, 0);
  change.device().processes[0].listed = false;
  change.device().processes[0].left = BatchBuilder::to_ns(1.25);
  change.device().processes[1].came = BatchBuilder::to_ns(1.25);
  const Ledger ledger = step(engine, change);
  EXPECT_EQ(reason(ledger, Reason::kUnseen), Energy());
  EXPECT_NEAR(process(ledger, 1).booked.shared.joules(), 75, 10);
  EXPECT_NEAR(process(ledger, 2).booked.shared.joules(), 225, 10);
  // Two at once: nobody knows.
  const Ledger both = step(engine, blind(3, 900'000).process(2, 0).process(3, 0));
  EXPECT_EQ(reason(both, Reason::kUnseen), Energy::millijoules(300'000));
}

// A cycle that comes late is followed by a short step, shorter than the period of the lists.
TEST(Engine, TwoAtOncePayNothingInAStepOfAnyLength) {
  for (const auto attribution : {Attribution::kUtilization, Attribution::kAdaptive}) {
    for (const double seconds : {0.001, 0.08, 0.1, 0.2, 2.0}) {
      Engine engine(rules(attribution));
      step(engine, blind(0, 0).process(1, 0).process(2, 0));
      Ledger ledger = step(engine, blind(seconds, 33'000).process(1, 0).process(2, 0));
      ledger = step(engine, blind(2 * seconds, 66'000).process(1, 0).process(2, 0));
      EXPECT_EQ(process(ledger, 1).booked.total(), Energy()) << seconds;
      EXPECT_EQ(process(ledger, 2).booked.total(), Energy()) << seconds;
    }
  }
}

// Both are in the first list after an empty one, or both in the last before one: they did not replace each other.
TEST(Engine, TwoWhoCameOrLeftTogetherPayNothing) {
  for (const double seconds : {0.08, 0.2, 1.0}) {
    Engine engine(rules());
    step(engine, blind(1, 0));
    BatchBuilder come = blind(1 + seconds, 33'000).process(1, 0).process(2, 0);
    for (ProcessSample& process : come.device().processes) process.came = BatchBuilder::to_ns(1 + seconds - 0.02);
    step(engine, come);
    BatchBuilder leave = blind(1 + 2 * seconds, 66'000).process(1, 0).process(2, 0);
    for (ProcessSample& process : leave.device().processes) {
      process.listed = false;
      process.left = BatchBuilder::to_ns(1 + seconds + 0.02);
    }
    const Ledger ledger = step(engine, leave);
    EXPECT_EQ(process(ledger, 1).booked.total(), Energy()) << seconds;
    EXPECT_EQ(process(ledger, 2).booked.total(), Energy()) << seconds;
  }
}

TEST(Engine, AnInferredOwnerIsEstimated) {
  Engine engine(rules());
  step(engine, BatchBuilder(0).gpu(0, 0));
  BatchBuilder batch(1);
  batch.gpu(0, 100'000).process(7, 0.4, 0, testing::pod_owner("train"));
  batch.identity(7).owner_inferred = true;
  const Ledger ledger = step(engine, batch);
  EXPECT_EQ(ledger.owners.at(0).booked.shared, Energy::millijoules(100'000));
  EXPECT_EQ(process(ledger, 7).booked.alone, Energy());
}

// A counter below the last one was reset in the gap: what it shows was spent there, and no process survived the reset.
TEST_P(Gap, TheValueOfACounterThatWasResetIsTheExportersOwn) {
  step(engine_, BatchBuilder(0).gpu(0, 9'000'000).process(1, 1));
  begin();
  step(engine_, BatchBuilder(5).gpu(0, 100'000).process(2, 1));
  step(engine_, BatchBuilder(6).gpu(0, 150'000).process(2, 1));
  const Ledger ledger = step(engine_, BatchBuilder(7).gpu(0, 200'000).process(2, 1));
  EXPECT_EQ(reason(ledger, Reason::kExporterDown), Energy::millijoules(200'000));
  EXPECT_EQ(ledger.devices[0].measured, Energy::millijoules(200'000));
  EXPECT_EQ(process(ledger, 2).booked.total(), Energy());
}

TEST_P(Gap, AFallThatCannotBeAResetGivesWhatWasCountedSince) {
  step(engine_, BatchBuilder(0).gpu(0, 90'000'000).process(1, 1));
  begin();
  step(engine_, BatchBuilder(5).gpu(0, 80'000'000).process(2, 1));
  EXPECT_EQ(step(engine_, BatchBuilder(6).gpu(0, 80'100'000).process(2, 1)).devices[0].measured, Energy());
  const Ledger ledger = step(engine_, BatchBuilder(7).gpu(0, 80'200'000).process(2, 1));
  EXPECT_EQ(ledger.devices[0].measured, Energy::millijoules(200'000));
}

// The mean of the power before and after stands for the gap.
TEST_P(Gap, WithoutAnEnergyCounterPowerIsIntegratedOverIt) {
  const auto old_gpu = [](double at, int64_t watts) {
    BatchBuilder batch(at);
    batch.gpu(0, 0).process(1, 1);
    batch.description().energy_source = EnergySource::kPowerIntegral;
    batch.device().energy_counter.reset();
    batch.device().power = Power::watts(static_cast<double>(watts));
    return batch;
  };
  step(engine_, old_gpu(0, 100));
  begin();
  Ledger ledger = step(engine_, old_gpu(10, 300));
  EXPECT_EQ(ledger.devices[0].measured, Energy::millijoules(2'000'000));
  EXPECT_EQ(process(ledger, 1).booked.shared, Energy::millijoules(2'000'000)) << "it was there before and after";
  ledger = step(engine_, old_gpu(11, 300));
  EXPECT_EQ(ledger.devices[0].measured, Energy::millijoules(2'300'000));
}

}  // namespace
}  // namespace gpuledger::attribute
