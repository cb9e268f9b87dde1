// SPDX-License-Identifier: Apache-2.0
#include "task/thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "support/eventually.h"
#include "support/thread_limit.h"
#include "task/health_cell.h"
#include "task/poll_thread.h"
#include "task/worker.h"

namespace gpuledger::task {
namespace {

using namespace std::chrono_literals;
using support::allow_threads;
using support::passes_without_threads;
using ::testing::HasSubstr;

TEST(Thread, RunsUntilItIsToldToStop) {
  std::atomic<bool> told = false;
  {
    Thread thread;
    EXPECT_FALSE(thread.running());
    ASSERT_TRUE(
        thread.start([&](const std::stop_token& stop) { told = eventually([&] { return stop.stop_requested(); }); })
            .ok());
    EXPECT_TRUE(thread.running());
  }
  EXPECT_TRUE(told);
}

TEST(Thread, ARefusedOneIsAnErrorAndCanBeMadeLater) {
  EXPECT_TRUE(passes_without_threads([] {
    std::atomic<bool> ran = false;
    const auto body = [&](const std::stop_token&) { ran = true; };
    Thread thread;
    const Status refused = thread.start(body);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::kUnavailable);
    EXPECT_THAT(refused.error().message, HasSubstr("no thread can be made"));
    EXPECT_FALSE(thread.running());
    allow_threads(true);
    ASSERT_TRUE(thread.start(body).ok());
    thread.join();
    EXPECT_TRUE(ran);
  }));
}

TEST(Thread, ARefusedLeavableOneIsOver) {
  EXPECT_TRUE(passes_without_threads([] {
    const auto owned = std::make_shared<int>(1);
    LeavableThread thread;
    EXPECT_FALSE(thread.start([owned] {}).ok());
    EXPECT_EQ(owned.use_count(), 1) << "the body is freed";
    EXPECT_TRUE(thread.end(1h));
  }));
}

TEST(Thread, ARefusedWorkerDoesItsTasksOnceItIsMade) {
  EXPECT_TRUE(passes_without_threads([] {
    std::atomic<bool> done = false;
    Worker worker;
    EXPECT_FALSE(worker.start().ok());
    worker.post([&] { done = true; });
    EXPECT_FALSE(worker.idle());
    allow_threads(true);
    ASSERT_TRUE(worker.start().ok());
    EXPECT_TRUE(worker.wait(1min));
    EXPECT_TRUE(done);
  }));
}

TEST(Thread, ASourceWithoutItsThreadIsDown) {
  EXPECT_TRUE(passes_without_threads([] {
    HealthCell health("docker");
    const PollThread thread([](const std::stop_token&) { return PollThread::Next{1h}; });
    health.needs_thread(thread.started());
    EXPECT_FALSE(health.get().up);
    EXPECT_FALSE(health.get().undecided);
    EXPECT_EQ(health.get().errors.at(kNoThread), 1u);
  }));
}

}  // namespace
}  // namespace gpuledger::task
