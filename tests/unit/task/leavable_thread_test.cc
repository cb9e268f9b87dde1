// SPDX-License-Identifier: Apache-2.0
#include "task/leavable_thread.h"

#include <gtest/gtest.h>

#include <future>

#include "unit/task/gate.h"

namespace gpuledger::task {
namespace {

using namespace std::chrono_literals;

TEST(LeavableThread, EndsAndHasFreedWhatItOwned) {
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = owned;
  LeavableThread thread;
  ASSERT_TRUE(thread.start([owned = std::move(owned)] { ++*owned; }).ok());
  EXPECT_TRUE(thread.end(1min));
  EXPECT_TRUE(watched.expired());
  EXPECT_TRUE(thread.end(0s)) << "it is still over";
}

TEST(LeavableThread, IsLeftToItselfAndEndsLater) {
  const auto gate = std::make_shared<Gate>();
  const auto returned = std::make_shared<std::promise<void>>();
  LeavableThread thread;
  ASSERT_TRUE(thread
                  .start([gate, returned] {
                    gate->pass();
                    returned->set_value();
                  })
                  .ok());
  EXPECT_FALSE(thread.end(20ms));
  EXPECT_FALSE(thread.end(1h)) << "nobody waits for it twice";
  gate->open();
  EXPECT_EQ(returned->get_future().wait_for(1min), std::future_status::ready);
}

TEST(LeavableThread, DestructorDoesNotWait) {
  const auto gate = std::make_shared<Gate>();
  {
    LeavableThread thread;
    ASSERT_TRUE(thread.start([gate] { gate->pass(); }).ok());
  }
  gate->open();
}

TEST(LeavableThread, WhatHangsWhileItIsFreedIsLeftToo) {
  const auto gate = std::make_shared<Gate>();
  std::shared_ptr<int> owned(new int(1), [gate](const int* number) {
    gate->pass();
    delete number;
  });
  LeavableThread thread;
  ASSERT_TRUE(thread.start([owned = std::move(owned)] {}).ok());
  EXPECT_FALSE(thread.end(20ms));
  gate->open();
}

}  // namespace
}  // namespace gpuledger::task
