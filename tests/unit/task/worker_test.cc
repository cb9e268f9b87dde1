// SPDX-License-Identifier: Apache-2.0
#include "task/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <vector>

#include "unit/task/gate.h"

namespace gpuledger::task {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class WorkerTest : public ::testing::Test {
 protected:
  WorkerTest() { EXPECT_TRUE(worker_.start().ok()); }
  // Whatever hangs is let go, so that no thread of one test is there in the next.
  ~WorkerTest() override {
    if (hung_) gate_->open();
  }

  void hang() {
    hung_ = true;
    std::promise<void> begun;
    worker_.post([gate = gate_, &begun] {
      begun.set_value();
      gate->pass();
    });
    begun.get_future().wait();
  }
  void let_go() {
    hung_ = false;
    gate_->open();
  }
  void post(int number) {
    worker_.post([seen = seen_, number] { seen->push_back(number); });
  }

  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::shared_ptr<std::vector<int>> seen_ = std::make_shared<std::vector<int>>();
  Worker worker_;
  bool hung_ = false;
};

TEST_F(WorkerTest, DoesOneAfterTheOther) {
  EXPECT_TRUE(worker_.idle());
  for (int i = 0; i < 3; ++i) post(i);
  ASSERT_TRUE(worker_.wait(1min));
  EXPECT_TRUE(worker_.idle());
  EXPECT_THAT(*seen_, ElementsAre(0, 1, 2));
}

TEST_F(WorkerTest, ATaskIsFreedBeforeItIsIdle) {
  for (int i = 0; i < 100; ++i) {
    auto owned = std::make_shared<int>(1);
    const std::weak_ptr<int> watched = owned;
    worker_.post([owned = std::move(owned)] {});
    ASSERT_TRUE(worker_.wait(1min));
    ASSERT_TRUE(watched.expired());
  }
}

TEST_F(WorkerTest, WhatHangsWhileATaskIsFreedHoldsNobodyUp) {
  hung_ = true;
  std::shared_ptr<int> owned(new int(1), [gate = gate_](const int* number) {
    gate->pass();
    delete number;
  });
  worker_.post([owned = std::move(owned)] {});
  EXPECT_FALSE(worker_.wait(20ms));
  EXPECT_FALSE(worker_.idle());
  let_go();
  EXPECT_TRUE(worker_.wait(1min));
}

TEST_F(WorkerTest, ACallThatHangsIsWaitedForNoLongerThanAsked) {
  hang();
  post(1);
  EXPECT_FALSE(worker_.wait(20ms));
  EXPECT_FALSE(worker_.idle());
  let_go();
  EXPECT_TRUE(worker_.wait(1min));
  EXPECT_THAT(*seen_, ElementsAre(1));
}

TEST_F(WorkerTest, DropsWhatHasNotBegun) {
  hang();
  post(1);
  worker_.drop_waiting();
  post(2);
  let_go();
  ASSERT_TRUE(worker_.wait(1min));
  EXPECT_THAT(*seen_, ElementsAre(2));
}

TEST_F(WorkerTest, EndDoesWhatWaitsAndTakesNothingMore) {
  for (int i = 0; i < 3; ++i) post(i);
  EXPECT_TRUE(worker_.end(1min));
  post(3);
  EXPECT_THAT(*seen_, ElementsAre(0, 1, 2));
}

TEST_F(WorkerTest, AnIdleOneEndsWhateverThePatience) {
  for (int i = 0; i < 100; ++i) {
    Worker worker;
    ASSERT_TRUE(worker.start().ok());
    worker.post([seen = seen_] { seen->push_back(1); });
    ASSERT_TRUE(worker.wait(1min));
    ASSERT_TRUE(worker.end(0s));
  }
}

TEST_F(WorkerTest, ThatHangsIsLeftAndDoesTheRestLater) {
  hang();
  std::promise<void> last;
  worker_.post([&last] { last.set_value(); });
  EXPECT_FALSE(worker_.end(20ms));
  let_go();
  EXPECT_EQ(last.get_future().wait_for(1min), std::future_status::ready);
}

}  // namespace
}  // namespace gpuledger::task
