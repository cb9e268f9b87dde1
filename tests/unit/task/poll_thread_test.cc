// SPDX-License-Identifier: Apache-2.0
#include "task/poll_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace gpuledger::task {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Looks that are counted, and a promise for the second.
struct Looks {
  PollThread::Next operator()(PollThread::Next next) {
    if (++count == 1) first.set_value();
    if (count == 2) second.set_value();
    return next;
  }
  std::atomic<int> count = 0;
  std::promise<void> first, second;
};

TEST(PollThread, LooksAtOnceAndSoonerWhenAsked) {
  Looks looks;
  const auto began = Clock::now();
  PollThread thread([&](const std::stop_token&) { return looks({1h}); });
  looks.first.get_future().wait();
  for (int i = 0; i < 10; ++i) thread.ask();
  ASSERT_EQ(looks.second.get_future().wait_for(30s), std::future_status::ready);
  EXPECT_GE(Clock::now() - began, PollThread::kLeastApart);
  EXPECT_EQ(looks.count, 2) << "many times within a second are one";
}

TEST(PollThread, AskingDoesNotUndoABackOff) {
  Looks looks;
  PollThread thread([&](const std::stop_token&) { return looks({1h, false}); });
  looks.first.get_future().wait();
  thread.ask();
  EXPECT_EQ(looks.second.get_future().wait_for(PollThread::kLeastApart + 200ms), std::future_status::timeout);
}

TEST(PollThread, EndsWithoutWaitingForTheNextLook) {
  Looks looks;
  const auto began = Clock::now();
  {
    const PollThread thread([&](const std::stop_token&) { return looks({1h}); });
    looks.first.get_future().wait();
  }
  EXPECT_LT(Clock::now() - began, 60s);
}

}  // namespace
}  // namespace gpuledger::task
