// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/timeline.h"

#include <gtest/gtest.h>

namespace gpuledger::attribute {
namespace {

Member member(uint64_t account, double from, double to, double busy = 0) {
  Member result;
  result.account = account;
  result.process = {static_cast<Pid>(account), account};
  result.from = from;
  result.to = to;
  result.busy = busy;
  return result;
}

// A second of 100 J in which the monitors are read ten times.
Step second(double begin, std::vector<Member> members, double sm = 0.5) {
  Step step;
  step.begin = begin;
  step.end = begin + 1;
  step.dynamic_joules = 100;
  step.full_watts = 100;
  step.members = std::move(members);
  for (int i = 1; i <= 10; ++i) {
    Reading reading;
    reading.to = begin + i * 0.1 - 0.1;
    reading.from = reading.to - 0.1;
    reading.busy = 1;
    reading.parts[Activity::kSm] = sm;
    step.readings.push_back(reading);
  }
  return step;
}

double joules(const std::vector<WindowInput>& windows) {
  double sum = 0;
  for (const WindowInput& window : windows) sum += window.joules;
  return sum;
}

TEST(Timeline, WindowsEndWhereTheReadingsDo) {
  Timeline timeline;
  const auto first = timeline.add(second(0, {member(1, 0, 1)}));
  ASSERT_EQ(first.size(), 1u);
  EXPECT_NEAR(first[0].end, 0.9, 1e-9);
  EXPECT_NEAR(first[0].joules, 90, 1e-9);
  const Step next = second(1, {member(1, 1, 2)});
  const auto later = timeline.add(next);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_NEAR(later[0].begin, 0.9, 1e-9);
  EXPECT_NEAR(later[0].end, 1.9, 1e-9);
  EXPECT_NEAR(later[0].shown[1], 0.5, 1e-9);
  EXPECT_NEAR(timeline.rest(next).joules, 10, 1e-9) << "not complete, but not lost either";
}

TEST(Timeline, ACutWhereSomebodyCame) {
  Timeline timeline;
  (void)timeline.add(second(0, {member(1, 0, 1)}));
  Step step = second(1, {member(1, 1, 2), member(2, 1.4, 2)});
  const auto windows = timeline.add(step);
  ASSERT_EQ(windows.size(), 1u) << "the newcomer's half second waits for more";
  EXPECT_NEAR(windows[0].end, 1.4, 1e-9);
  EXPECT_EQ(windows[0].parts.size(), 1u);
  const auto next = timeline.add(second(2, {member(1, 2, 3), member(2, 2, 3)}));
  ASSERT_FALSE(next.empty());
  EXPECT_NEAR(next[0].begin, 1.4, 1e-9);
  EXPECT_EQ(next[0].parts.size(), 2u);
}

TEST(Timeline, AShortLifeHasAWindowOfItsOwn) {
  Timeline timeline;
  (void)timeline.add(second(0, {member(1, 0, 1)}));
  const auto windows = timeline.add(second(1, {member(1, 1, 2), member(2, 1.2, 1.6)}));
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_EQ(windows[0].parts.size(), 1u);
  EXPECT_EQ(windows[1].parts.size(), 2u);
  EXPECT_NEAR(windows[1].begin, 1.2, 1e-9);
  EXPECT_NEAR(windows[1].end, 1.6, 1e-9);
}

TEST(Timeline, PowerSaysWhenTheJoulesWereSpent) {
  Timeline timeline;
  (void)timeline.add(second(0, {member(1, 0, 1)}));
  Step step = second(1, {member(1, 1, 2), member(2, 1.5, 2)});
  for (int i = 1; i <= 50; ++i) step.power.push_back({1 + i * 0.02, i <= 25 ? 10.0 : 90.0});
  const auto windows = timeline.add(step);
  ASSERT_FALSE(windows.empty());
  EXPECT_NEAR(windows[0].end, 1.5, 1e-9);
  EXPECT_NEAR(windows[0].joules, 10 + 10, 0.5) << "the tenth of a second before, and a tenth of this one";
}

TEST(Timeline, NoJouleIsLostOrMadeWhateverComes) {
  Timeline timeline;
  double cut = 0;
  Step last;
  for (int i = 0; i < 20; ++i) {
    last = second(i, {member(1, i, i + 1), member(2 + static_cast<uint64_t>(i) / 3, i + 0.1 * (i % 7), i + 1)});
    if (i % 4 == 0) last.readings.clear();
    cut += joules(timeline.add(last));
  }
  EXPECT_NEAR(cut + timeline.rest(last).joules, 2000, 1e-6);
}

TEST(Timeline, AGapBeginsAnew) {
  Timeline timeline;
  (void)timeline.add(second(0, {member(1, 0, 1)}));
  const auto windows = timeline.add(second(60, {member(2, 60, 61)}));
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_NEAR(windows[0].begin, 60, 1e-9);
  EXPECT_EQ(windows[0].parts.size(), 1u);
}

TEST(Timeline, ResidencyIsWorkWhereOthersWaited) {
  Timeline timeline;
  Step step = second(0, {member(1, 0, 1), member(2, 0, 1)});
  for (Reading& reading : step.readings) reading.busy = 0.5;
  // Account 1 is resident all the time; in every other slot account 2 wants the engine for half of it.
  for (int i = 0; i < 50; ++i) {
    ResidencySlot slot{i * 0.02, (i + 1) * 0.02, {}};
    if (i % 2 == 0) {
      slot.times = {{1, 0.01, 0.01}, {2, 0.01, 0.01}};
    } else {
      slot.times = {{1, 0.02, 0}};
    }
    step.residency.push_back(slot);
  }
  const auto windows = timeline.add(step);
  ASSERT_EQ(windows.size(), 1u);
  ASSERT_TRUE(windows[0].traced);
  EXPECT_NEAR(windows[0].parts[0].time, 0.25, 0.06) << "the monitors say that the rest of it was idle";
  EXPECT_NEAR(windows[0].parts[1].time, 0.25, 0.06);
}

}  // namespace
}  // namespace gpuledger::attribute
