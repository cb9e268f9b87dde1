// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "attribute/books/engine.h"
#include "attribute/state/state_text.h"
#include "support/batch_builder.h"
#include "support/laws.h"

namespace gpuledger::attribute {
namespace {

using testing::BatchBuilder;

constexpr auto kDown = static_cast<size_t>(Reason::kExporterDown);

Energy joules(int64_t value) {
  return Energy::millijoules(value * 1000);
}

class Restore : public ::testing::Test {
 protected:
  Ledger advance(const BatchBuilder& batch) {
    ledger_ = engine_->advance(batch.batch(), batch.identities());
    testing::expect_balanced(ledger_);
    counters_.check(ledger_);
    return ledger_;
  }
  // kill -9, and another program reads what the last one left.
  void restart(const std::string& boot_id = "boot-1", BookingRules rules = {}) {
    auto state = parse_state(write_state(engine_->state()));
    ASSERT_TRUE(state.ok()) << state.error().message;
    engine_.emplace(rules);
    engine_->restore(std::move(*state), boot_id);
  }
  void start() {
    engine_.emplace(BookingRules());
    engine_->restore({}, "boot-1");
  }
  const ProcessAccount* find(Pid pid) const {
    for (const ProcessAccount& process : ledger_.processes) {
      if (process.identity.key.pid == pid) return &process;
    }
    return nullptr;
  }
  const DeviceAccount& device() const { return ledger_.devices.at(0); }

  std::optional<Engine> engine_;
  Ledger ledger_;
  testing::NeverFalls counters_;
};

TEST_F(Restore, WhoWasAloneBeforeAndAfterPaysForTheGapAsEstimated) {
  start();
  advance(BatchBuilder(0).gpu(0, 0).process(1, 1));
  advance(BatchBuilder(1).gpu(0, 300'000).process(1, 1));
  restart();
  advance(BatchBuilder(601).gpu(0, 120'300'000).process(1, 1));
  EXPECT_EQ(find(1)->booked.alone, joules(300));
  EXPECT_EQ(find(1)->booked.shared, joules(120'000));
  EXPECT_EQ(device().measured, joules(120'300));
  EXPECT_TRUE(find(1)->active);
  advance(BatchBuilder(602).gpu(0, 120'500'000).process(1, 1));
  EXPECT_EQ(find(1)->booked.alone, joules(500));
}

TEST_F(Restore, NobodyLivedThroughSoItIsTheExportersOwn) {
  start();
  advance(BatchBuilder(0).gpu(0, 0).process(1, 1));
  advance(BatchBuilder(1).gpu(0, 300'000).process(1, 1));
  restart();
  advance(BatchBuilder(11).gpu(0, 3'300'000).process(1, 1, 777).process(2, 1));
  EXPECT_EQ(device().unattributed[kDown], joules(3'000));
  const ProcessAccount* first = find(1);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->booked.total(), joules(300));
  EXPECT_FALSE(first->active);  // its pid is somebody else's now
  EXPECT_EQ(first->gone_for, Nanoseconds(0));
}

TEST_F(Restore, WhoDiedMeanwhileIsNoStrangerWhenTheDriverStillNamesIt) {
  start();
  advance(BatchBuilder(0).gpu(0, 0).process(1, 1));
  advance(BatchBuilder(1).gpu(0, 300'000).process(1, 1));
  restart();
  BatchBuilder batch(11);
  batch.gpu(0, 3'300'000).process(1, 0.5);
  batch.last().listed = false;
  batch.identity(1) = {};  // never seen by this program, and gone
  batch.identity(1).key.pid = 1;
  advance(batch);
  EXPECT_EQ(ledger_.processes.size(), 1u);
  EXPECT_EQ(find(1)->identity.name, "p1");
  EXPECT_EQ(device().unattributed[kDown], joules(3'000));
  advance(BatchBuilder(12).gpu(0, 3'400'000));
  EXPECT_FALSE(find(1)->active);
}

TEST_F(Restore, SurvivorsShareByWhatTheyAreKnownToDraw) {
  start();
  double now = 0;
  int64_t counter = 0;
  const auto step = [&](int64_t watts, bool first, bool second) {
    BatchBuilder batch(++now);
    batch.gpu(0, counter += watts * 1000);
    if (first) batch.process(1, 0.99);
    if (second) batch.process(2, 0.99);
    advance(batch);
  };
  for (int i = 0; i < 5; ++i) step(80, false, false);
  for (int i = 0; i < 20; ++i) step(126 + 400, true, false);
  step(80, false, false);
  for (int i = 0; i < 20; ++i) step(126 + 100, false, true);
  step(126 + 250, true, true);
  const Energy first = find(1)->booked.total();
  const Energy second = find(2)->booked.total();
  restart();
  now += 99;
  step(100 * (126 + 250), true, true);
  const Energy more = find(1)->booked.total() - first;
  const Energy less = find(2)->booked.total() - second;
  EXPECT_EQ(more + less, joules(37'600));
  EXPECT_GT(more.joules() / less.joules(), 2.5) << "four times the watts, less what the samples say of their shares";
  EXPECT_GT(find(1)->standard_error_joules, 1000);
}

TEST_F(Restore, ASurvivorWithNewNeighboursPaysAsEstimated) {
  start();
  advance(BatchBuilder(0).gpu(0, 0).process(1, 1));
  advance(BatchBuilder(1).gpu(0, 300'000).process(1, 1));
  restart();
  advance(BatchBuilder(11).gpu(0, 3'300'000).process(1, 1).process(2, 1));
  EXPECT_EQ(find(1)->booked.alone, joules(300));
  EXPECT_EQ(find(1)->booked.shared, joules(3'000));
  EXPECT_EQ(find(2)->booked.total(), Energy());
  EXPECT_GT(find(1)->standard_error_joules, 100);
}

TEST_F(Restore, MeasuredOnlyEstimatesNothing) {
  start();
  advance(BatchBuilder(0).gpu(0, 0).process(1, 1).process(2, 1));
  BookingRules rules;
  rules.attribution = Attribution::kMeasuredOnly;
  restart("boot-1", rules);
  advance(BatchBuilder(10).gpu(0, 3'000'000).process(1, 1).process(2, 1));
  EXPECT_EQ(device().unattributed[kDown], joules(3'000));
}

TEST_F(Restore, AnOwnerNotKnownAgainYetCostsTheOldOneNothing) {
  start();
  const Owner pod = testing::pod_owner("train");
  advance(BatchBuilder(0).gpu(0, 0).process(1, 1, 0, pod));
  advance(BatchBuilder(1).gpu(0, 300'000).process(1, 1, 0, pod));
  restart();
  Owner nameless;
  nameless.kind = OwnerKind::kPod;
  nameless.pod_uid = "uid-train-unnamed";
  advance(BatchBuilder(11).gpu(0, 3'300'000).process(1, 1, 0, nameless));
  const auto paid = std::find_if(ledger_.owners.begin(), ledger_.owners.end(),
                                 [&](const OwnerAccount& account) { return account.owner == pod; });
  ASSERT_NE(paid, ledger_.owners.end());
  EXPECT_EQ(paid->booked.total(), joules(3'300));
  advance(BatchBuilder(12).gpu(0, 3'600'000).process(1, 1, 0, pod));
  EXPECT_EQ(device().measured, joules(3'600));
}

TEST_F(Restore, AnotherBootIsAnotherCounterAndOtherProcesses) {
  start();
  advance(BatchBuilder(0).gpu(0, 0).process(1, 1));
  advance(BatchBuilder(1).gpu(0, 300'000).process(1, 1));
  restart("boot-2");
  // The same pid and the same ticks since another boot are somebody else.
  counters_ = {};
  advance(BatchBuilder(2).gpu(0, 900'000).process(1, 1));
  EXPECT_EQ(device().measured, joules(300));
  EXPECT_EQ(ledger_.processes.size(), 2u);
  advance(BatchBuilder(3).gpu(0, 1'000'000).process(1, 1));
  EXPECT_EQ(device().measured, joules(400));
  EXPECT_EQ(ledger_.processes[0].booked.total() + ledger_.processes[1].booked.total(), joules(400));
  EXPECT_NE(ledger_.processes[0].active, ledger_.processes[1].active);
}

TEST_F(Restore, ABootThatCannotBeToldIsAnother) {
  start();
  advance(BatchBuilder(0).gpu(0, 0).process(1, 1));
  restart("");
  advance(BatchBuilder(2).gpu(0, 900'000).process(1, 1));
  EXPECT_EQ(device().measured, Energy());
}

TEST_F(Restore, MoreThanTheLimitAllowsIsAnAnomaly) {
  start();
  advance(BatchBuilder(0).gpu(0, 0).process(1, 1));
  restart();
  advance(BatchBuilder(10).gpu(0, 12'000'000).process(1, 1));
  EXPECT_EQ(device().unattributed[static_cast<size_t>(Reason::kAnomaly)], joules(12'000));
}

TEST_F(Restore, AGpuThatIsSeenLaterIsRememberedOverAnotherRestart) {
  start();
  advance(BatchBuilder(0).gpu(0, 0).process(1, 1));
  advance(BatchBuilder(1).gpu(0, 300'000).process(1, 1));
  restart();
  advance(BatchBuilder(2));  // the driver is away
  EXPECT_TRUE(ledger_.devices.empty());
  restart();
  BatchBuilder silent(5);
  silent.gpu(0, 0).process(1, 1);
  silent.device().energy_counter.reset();
  advance(silent);
  EXPECT_EQ(device().measured, joules(300));
  restart();
  advance(BatchBuilder(11).gpu(0, 3'300'000).process(1, 1));
  EXPECT_EQ(find(1)->booked.total(), joules(3'300));
}

TEST_F(Restore, BooksSayWhenTheyWereOpenedAndCountTheirRuns) {
  const auto opened = [](double seconds) { return BatchBuilder(seconds).batch().at.wall; };
  const auto expect = [&](size_t gpu, Nanoseconds at, uint64_t run) {
    const auto& opening = ledger_.devices.at(gpu).opening;
    ASSERT_TRUE(opening);
    EXPECT_EQ(opening->at, at);
    EXPECT_EQ(opening->run, run);
  };
  start();
  advance(BatchBuilder(0.0015).gpu(0, 700'000));
  EXPECT_EQ(device().measured, Energy());
  expect(0, opened(0) + std::chrono::milliseconds(1), 1);
  advance(BatchBuilder(1));  // lost
  advance(BatchBuilder(2).gpu(0, 900'000));
  expect(0, opened(0) + std::chrono::milliseconds(1), 1);
  restart();
  advance(BatchBuilder(5).gpu(1, 400'000));  // another GPU in its place
  expect(0, opened(5), 1);
  restart("boot-2");
  advance(BatchBuilder(9).gpu(0, 0).gpu(1, 0));
  expect(0, opened(0) + std::chrono::milliseconds(1), 3);
  expect(1, opened(5), 2);
  counters_ = {};
  start();  // without the state
  advance(BatchBuilder(12).gpu(0, 0).gpu(1, 0));
  expect(0, opened(12), 1);
  expect(1, opened(12), 1);
}

TEST_F(Restore, BooksOfAnOlderStateDoNotSayWhenTheyWereOpened) {
  start();
  advance(BatchBuilder(0).gpu(0, 0));
  EngineState older = engine_->state();
  older.devices.at(0).opening.reset();
  engine_.emplace(BookingRules());
  engine_->restore(std::move(older), "boot-1");
  advance(BatchBuilder(1).gpu(0, 300'000).gpu(1, 0));
  EXPECT_FALSE(ledger_.devices.at(0).opening);
  EXPECT_TRUE(ledger_.devices.at(1).opening);
  restart();
  advance(BatchBuilder(2).gpu(0, 600'000));
  EXPECT_FALSE(device().opening);
}

// What the hardware's counter had shown before the driver was reloaded is not in it any more.
TEST_F(Restore, TheShownCounterGoesOnAfterAReloadAndARestart) {
  start();
  advance(BatchBuilder(0).gpu(0, 5'000'000));
  advance(BatchBuilder(1).gpu(0, 5'050'000));
  advance(BatchBuilder(2).gpu(0, 100'000));  // reloaded
  advance(BatchBuilder(3).gpu(0, 150'000));
  advance(BatchBuilder(4).gpu(0, 200'000));
  const auto shown = [&] { return device().counted_before.value_or(Energy()) + device().measured; };
  EXPECT_EQ(shown(), joules(5'250));
  restart();
  advance(BatchBuilder(5).gpu(0, 400'000));
  EXPECT_EQ(shown(), joules(5'450));
  restart("boot-2");
  advance(BatchBuilder(8).gpu(0, 10'000));
  EXPECT_GE(shown(), joules(5'450));
}

TEST_F(Restore, WhoIsGoneStaysForTheRestOfItsRetention) {
  start();
  advance(BatchBuilder(0).gpu(0, 0).process(1, 1));
  advance(BatchBuilder(1).gpu(0, 300'000).process(1, 1));
  advance(BatchBuilder(2).gpu(0, 400'000));
  advance(BatchBuilder(102).gpu(0, 5'000'000));
  restart();
  advance(BatchBuilder(1000).gpu(0, 5'000'000));
  ASSERT_NE(find(1), nullptr);
  EXPECT_EQ(find(1)->gone_for, std::chrono::seconds(100));
  advance(BatchBuilder(1201).gpu(0, 5'000'000));
  EXPECT_EQ(find(1), nullptr);
}

// A CronJob: each pass is two looks, and the second ends in an evaluation.
TEST_F(Restore, IdlenessIsKnownFromPassToPass) {
  BookingRules passes;
  passes.idle_interval = passes.sample_interval;
  const auto pass = [&](double at, double use) {
    advance(BatchBuilder(at).gpu(0, static_cast<int64_t>(at * 100'000)).process(1, use));
    advance(BatchBuilder(at + 1).gpu(0, static_cast<int64_t>(at * 100'000 + 100'000)).process(1, use));
  };
  engine_.emplace(passes);
  engine_->restore({}, "boot-1");
  pass(0, 0.5);
  EXPECT_TRUE(find(1)->idle.evaluated);
  restart("boot-1", passes);
  pass(60, 0);
  EXPECT_TRUE(find(1)->idle.evaluated);
  EXPECT_FALSE(find(1)->idle.idle) << "one quiet pass";
  restart("boot-1", passes);
  pass(120, 0);
  EXPECT_TRUE(find(1)->idle.idle);
  EXPECT_EQ(find(1)->idle.idle_for, std::chrono::seconds(120)) << "since it worked at the end of the first pass";
  restart("boot-1", passes);
  pass(1000, 0);
  EXPECT_FALSE(find(1)->idle.evaluated) << "nobody looked for more than ten minutes";
}

TEST_F(Restore, PeaksAndUsersAreKept) {
  const auto at = [](double second, uint64_t bytes) {
    BatchBuilder batch(second);
    batch.gpu(0, static_cast<int64_t>(second) * 300'000).process(1, 1, 0, testing::pod_owner("train"));
    batch.last().memory = Bytes{bytes};
    batch.last().compute = true;
    batch.identity(1).uid = "2001";
    batch.identity(1).user_name = "ana";
    batch.identity(1).job = {"physics", "gpu", 2, 940.0};
    return batch;
  };
  start();
  advance(at(0, 100));
  advance(at(1, 5000));
  advance(at(2, 100));
  restart();
  advance(at(3, 100));
  advance(at(4, 100));
  EXPECT_EQ(find(1)->memory_peak, Bytes{5000});
  EXPECT_EQ(ledger_.owners.at(0).memory_peak, Bytes{5000});
  advance(BatchBuilder(5).gpu(0, 1'500'000));
  restart();
  advance(BatchBuilder(6).gpu(0, 1'800'000));
  EXPECT_FALSE(find(1)->active);
  EXPECT_EQ(find(1)->memory_peak, Bytes{5000});
  EXPECT_TRUE(find(1)->compute) << "a label of its series";
  EXPECT_EQ(find(1)->identity.uid, "2001");
  EXPECT_EQ(find(1)->identity.user_name, "ana");
  EXPECT_EQ(ledger_.owners.at(0).uid, "2001");
  EXPECT_EQ(ledger_.owners.at(0).user_name, "ana");
  EXPECT_EQ(ledger_.owners.at(0).job, (JobFacts{"physics", "gpu", 2, 940.0}));
}

TEST_F(Restore, TheMpsServerDoesNotPayForItsClients) {
  start();
  const auto node = [](double at, int64_t counter) {
    BatchBuilder batch(at);
    batch.gpu(0, counter).process(1, 1);
    batch.identity(1).name = "nvidia-cuda-mps";
    batch.process(2, 0);
    batch.last().mps_client = true;
    return batch;
  };
  advance(node(0, 0));
  restart();
  advance(node(10, 3'000'000));
  EXPECT_EQ(find(1)->booked.total(), Energy());
  EXPECT_EQ(find(2)->booked.shared, joules(3'000));
}

}  // namespace
}  // namespace gpuledger::attribute
