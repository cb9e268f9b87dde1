// SPDX-License-Identifier: Apache-2.0
#include "engine_steps.h"

// How claims that were corrected become counters. The books begin with a process that was charged too much or too
// little, as they stand after something was learned.
namespace gpuledger::attribute {
namespace {

using testing::BatchBuilder;

constexpr int64_t kMillijoulesPerStep = 526'000;  // one second: 126 J of them are static
constexpr double kDynamicJoules = 400;

BatchBuilder batch_at(int second, bool with_second_process) {
  BatchBuilder batch(second);
  batch.gpu(0, second * kMillijoulesPerStep);
  batch.process(1, with_second_process ? 0.5 : 1.0);
  if (with_second_process) batch.process(2, 0.5);
  return batch;
}

class BookingLaws : public ::testing::Test {
 protected:
  // Two processes share the GPU for a while; then the second may leave.
  void begin(bool second_leaves) {
    rules_ = rules(Attribution::kAdaptive);  // the one that remembers claims over a restart
    engine_.emplace(rules_);
    engine_->restore({}, "boot");
    for (second_ = 0; second_ < 4; ++second_) advance(true);
    if (second_leaves) advance(false), ++second_;
  }
  // What the process should have been charged is now that much more than what it was.
  void owe(Pid pid, double joules) {
    EngineState state = engine_->state();
    for (AccountState& account : state.devices.at(0).accounts) {
      if (account.identity.key.pid != pid) continue;
      account.claimed = (account.booked.total() - account.static_energy).joules() + joules;
    }
    engine_.emplace(rules_);
    engine_->restore(std::move(state), "boot");
  }
  // The process's joules in the next second.
  double booked_in_a_step(Pid pid, bool with_second_process) {
    const Energy before = process(ledger_, pid).booked.total();
    advance(with_second_process);
    ++second_;
    return (process(ledger_, pid).booked.total() - before).joules();
  }
  void advance(bool with_second_process) { ledger_ = step(*engine_, batch_at(second_, with_second_process)); }

  BookingRules rules_;
  std::optional<Engine> engine_;
  Ledger ledger_;
  int second_ = 0;
};

TEST_F(BookingLaws, ACorrectionNeverLooksLikeAStop) {
  begin(false);
  owe(1, -100'000);
  owe(2, 100'000);
  (void)booked_in_a_step(1, true);  // the step over the restart is booked by another rule
  const double spends = kDynamicJoules / 2;
  for (int i = 0; i < 5; ++i) {
    const double booked = booked_in_a_step(1, true);
    // Against a debt this large half of what it spends is a small weight, but it is there.
    EXPECT_GT(booked, 126.0 / 2 + spends / 2 * kDynamicJoules / 101'000) << i;
  }
}

TEST_F(BookingLaws, WhoWasChargedTooMuchIsPaidBackByPayingLess) {
  begin(false);
  owe(1, -600);
  (void)booked_in_a_step(1, true);
  const double paid = booked_in_a_step(1, true);
  EXPECT_LT(paid, (126 + kDynamicJoules) / 2 - 50);
  EXPECT_GT(paid, 126.0 / 2);
}

TEST_F(BookingLaws, WhoExitedIsPaidWhatItIsOwedForAMinute) {
  begin(true);
  owe(2, 100'000);
  (void)booked_in_a_step(1, false);
  double paid = 0;
  for (int i = 0; i < 5; ++i) paid += booked_in_a_step(2, false);
  EXPECT_GT(paid, 3 * kDynamicJoules);
  while (second_ < 70) (void)booked_in_a_step(2, false);
  EXPECT_EQ(booked_in_a_step(2, false), 0) << "its last scrape is long ago";
}

}  // namespace
}  // namespace gpuledger::attribute
