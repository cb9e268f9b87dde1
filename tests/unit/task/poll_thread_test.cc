// SPDX-License-Identifier: Apache-2.0
#include "task/poll_thread.h"

#include <gtest/gtest.h>

#include <atomic>

#include "support/manual_timer.h"

namespace gpuledger::task {
namespace {

using namespace std::chrono_literals;

class PollThreadTest : public ::testing::Test {
 protected:
  PollThread::Look looks(PollThread::Next next) {
    return [this, next](const std::stop_token&) {
      ++looks_;
      return next;
    };
  }

  ManualTimer timer_;
  std::atomic<int> looks_ = 0;
};

TEST_F(PollThreadTest, LooksAtOnceAndThenWhenItIsTime) {
  const PollThread thread(looks({1h}), timer_);
  ASSERT_TRUE(timer_.eventually_waits_for(1h));
  EXPECT_EQ(looks_, 1);
  for (int i = 2; i < 5; ++i) {
    ASSERT_TRUE(timer_.end_wait());
    EXPECT_EQ(looks_, i);
    EXPECT_EQ(timer_.waits_for(), 1h);
  }
}

TEST_F(PollThreadTest, LooksSoonerWhenAskedButOnceASecond) {
  PollThread thread(looks({1h}), timer_);
  ASSERT_TRUE(timer_.eventually_waits_for(1h));
  timer_.advance(300ms);
  for (int i = 0; i < 10; ++i) thread.ask();
  ASSERT_TRUE(timer_.eventually_waits_for(PollThread::kLeastApart - 300ms));
  EXPECT_EQ(looks_, 1);
  thread.ask();
  ASSERT_TRUE(timer_.end_wait());
  EXPECT_EQ(looks_, 2) << "many times within a second are one";
  EXPECT_EQ(timer_.waits_for(), 1h);

  timer_.advance(1min);
  thread.ask();
  ASSERT_TRUE(timer_.eventually_waits_for(1h));
  EXPECT_EQ(looks_, 3) << "the last look is long ago";
}

TEST_F(PollThreadTest, AskingDoesNotUndoABackOff) {
  PollThread thread(looks({1h, false}), timer_);
  ASSERT_TRUE(timer_.eventually_waits_for(1h));
  for (int i = 0; i < 3; ++i) {
    thread.ask();
    timer_.advance(15min);
    ASSERT_TRUE(timer_.stays());
  }
  EXPECT_EQ(looks_, 1);
  ASSERT_TRUE(timer_.end_wait());
  EXPECT_EQ(looks_, 2);
  EXPECT_EQ(timer_.waits_for(), 1h) << "what was asked meanwhile is forgotten";
}

// On the machine's own time: it would take an hour.
TEST_F(PollThreadTest, EndsWithoutWaitingForTheNextLook) {
  for (const bool sooner_if_asked : {true, false}) {
    const int before = looks_;
    const PollThread thread(looks({1h, sooner_if_asked}));
    ASSERT_TRUE(eventually([&] { return looks_ == before + 1; }));
  }
}

TEST(SystemTimer, WaitsUntilTheTimeHasCome) {
  const auto before = std::chrono::steady_clock::now();
  EXPECT_TRUE(system_timer().sleep(std::stop_token(), 20ms));
  EXPECT_GE(std::chrono::steady_clock::now() - before, 20ms);
}

TEST(SystemTimer, AStopOrTheConditionEndsAWait) {
  std::stop_source stop;
  std::atomic<bool> slept = true;
  std::jthread sleeper([&] { slept = system_timer().sleep(stop.get_token(), 1h); });
  stop.request_stop();
  sleeper.join();
  EXPECT_FALSE(slept);

  Mutex mutex;
  std::condition_variable_any changed;
  bool held = false;
  std::jthread changer([&] {
    const MutexLock lock(mutex);
    held = true;
    changed.notify_all();
  });
  MutexLock lock(mutex);
  EXPECT_TRUE(
      system_timer().wait_until(lock, changed, std::stop_token(), system_timer().now() + 1h, [&] { return held; }));
}

}  // namespace
}  // namespace gpuledger::task
