// SPDX-License-Identifier: Apache-2.0
// A driver that gives false readings: what the GPU cannot have drawn never becomes joules.
#include "attribute/state/state_text.h"
#include "engine_steps.h"

namespace gpuledger::attribute {
namespace {

using testing::BatchBuilder;

constexpr int64_t kHuge = 999'999'999'999'999;

// One reading a second, in millijoules, while one process works alone.
class Meter {
 public:
  const DeviceAccount& watch(std::initializer_list<int64_t> readings) {
    for (const int64_t reading : readings) {
      BatchBuilder batch(second_++);
      batch.gpu(0, reading).process(1, 1);
      if (!limited_) batch.description().power_limit.reset();
      ledger_ = step(*engine_, batch);
      expect_nothing_falls();
    }
    return ledger_.devices[0];
  }
  const DeviceAccount& watch_restarting(std::initializer_list<int64_t> readings) {
    for (const int64_t reading : readings) {
      restart();
      watch({reading});
    }
    return ledger_.devices[0];
  }
  void restart() {
    const auto state = parse_state(write_state(engine_->state()));
    ASSERT_TRUE(state.ok()) << state.error().message;
    engine_ = std::make_unique<Engine>(rules());
    engine_->restore(*state, "boot");
  }
  void without_limit() { limited_ = false; }
  const Ledger& ledger() const { return ledger_; }

 private:
  void expect_nothing_falls() {
    const Energy measured = ledger_.devices[0].measured;
    EXPECT_GE(measured, measured_) << "second " << second_;
    measured_ = measured;
  }

  std::unique_ptr<Engine> engine_ = [] {
    auto engine = std::make_unique<Engine>(rules());
    engine->restore({}, "boot");
    return engine;
  }();
  int second_ = 0;
  bool limited_ = true;
  Ledger ledger_;
  Energy measured_;
};

Energy joules(int64_t value) {
  return Energy::millijoules(value * 1000);
}

// The joules of the time in doubt are booked once, late.
TEST(ImpossibleReadings, ACounterThatComesBackWasNotReset) {
  Meter meter;
  EXPECT_EQ(meter.watch({5'000'000, 5'300'000, 0}).measured, joules(300));
  const DeviceAccount& device = meter.watch({5'900'000, 6'200'000});
  EXPECT_EQ(device.measured, joules(1'200));
  EXPECT_EQ(device.refused_readings, 1u);
  EXPECT_EQ(*device.counted_before + device.measured, joules(6'200));
  EXPECT_EQ(process(meter.ledger(), 1).booked.alone, joules(1'200));
}

TEST(ImpossibleReadings, ASmallFallIsNoResetEither) {
  Meter meter;
  EXPECT_EQ(meter.watch({5'000'000, 5'300'000, 5'299'999, 5'900'000}).measured, joules(900));
}

TEST(ImpossibleReadings, WhatTheGpuCannotHaveDrawnIsNoReading) {
  for (const int64_t wrong : {kHuge, int64_t{50'000'000}}) {
    Meter meter;
    const DeviceAccount& device = meter.watch({5'000'000, 5'300'000, wrong, wrong, 6'200'000, wrong, 6'800'000});
    EXPECT_EQ(device.measured, joules(1'800));
    EXPECT_EQ(device.refused_readings, 3u);
    EXPECT_EQ(device.unattributed[static_cast<size_t>(Reason::kAnomaly)], Energy());
  }
}

TEST(ImpossibleReadings, AGpuWithoutLimitHasABoundToo) {
  Meter meter;
  meter.without_limit();
  EXPECT_EQ(meter.watch({5'000'000, 5'300'000, kHuge, 5'900'000}).measured, joules(900));
}

TEST(ImpossibleReadings, DifferentOnesInARow) {
  Meter meter;
  EXPECT_EQ(meter.watch({5'000'000, 5'300'000, 0, kHuge, 1, kHuge / 2, 6'800'000}).measured, joules(1'800));
}

TEST(ImpossibleReadings, AResetIsOneWhenTheNextReadingsGoOn) {
  Meter meter;
  EXPECT_EQ(meter.watch({9'000'000, 9'100'000, 50'000, 250'000}).measured, joules(100));
  const DeviceAccount& device = meter.watch({450'000, 650'000});
  EXPECT_EQ(device.measured, joules(750));
  EXPECT_EQ(device.refused_readings, 2u);
}

// Passes of a CronJob: each has a reading or two, and knows from the state file what the last one doubted.
TEST(ImpossibleReadings, AResetIsSeenOverRestarts) {
  Meter meter;
  meter.watch({9'000'000, 9'100'000});
  EXPECT_EQ(meter.watch_restarting({50'000, 250'000, 450'000, 650'000}).measured, joules(750));
}

TEST(ImpossibleReadings, OneAtARestartIsNoReset) {
  Meter meter;
  meter.watch({9'000'000, 9'100'000});
  EXPECT_EQ(meter.watch_restarting({0, 9'700'000, kHuge, 10'300'000}).measured, joules(1'300));
}

// Of the time in which the counter jumped nothing is known.
TEST(ImpossibleReadings, ACounterThatStaysOnAnotherCourseIsFollowed) {
  Meter meter;
  EXPECT_EQ(meter.watch({5'000'000, 5'300'000, 900'000'000, 900'200'000}).measured, joules(300));
  EXPECT_EQ(meter.watch({900'500'000, 900'600'000}).measured, joules(900));
}

TEST(ImpossibleReadings, AFalseFirstReadingIsNotWhatWasCountedBefore) {
  Meter meter;
  const DeviceAccount& device = meter.watch({kHuge, 5'000'000, 5'300'000, 5'600'000, 5'900'000});
  EXPECT_EQ(device.measured, joules(900));
  EXPECT_EQ(*device.counted_before + device.measured, joules(5'900));
}

// A DCGM engine that takes longer than a cycle.
TEST(ImpossibleReadings, OneThatIsGivenAgainCountsOnce) {
  Engine engine(rules());
  BatchBuilder first(0);
  first.gpu(0, 5'000'000);
  (void)step(engine, first);
  BatchBuilder wrong(1);
  wrong.gpu(0, 0).device().refused_readings = 1;
  EXPECT_EQ(step(engine, wrong).devices[0].refused_readings, 2u);
  EXPECT_EQ(step(engine, wrong).devices[0].refused_readings, 2u);
}

// It still draws what it may no longer draw.
TEST(ImpossibleReadings, ALoweredLimitMakesNoReadingImpossible) {
  Engine engine(rules());
  Ledger ledger;
  for (int second = 0; second <= 3; ++second) {
    BatchBuilder batch(second);
    batch.gpu(0, second * 690'000).process(1, 1);
    if (second >= 2) batch.description().power_limit = Power::watts(200);
    ledger = step(engine, batch);
  }
  EXPECT_EQ(ledger.devices[0].measured, Energy::millijoules(3 * 690'000));
  EXPECT_EQ(ledger.devices[0].refused_readings, 0u);
}

}  // namespace
}  // namespace gpuledger::attribute
