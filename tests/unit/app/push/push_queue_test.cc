// SPDX-License-Identifier: Apache-2.0
#include "app/push/push_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "unit/http/temporary_directory.h"

namespace gpuledger::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr PushQueue::Limits kRoomy;

std::string body_of(int number, size_t size = 100) {
  return std::to_string(number) + std::string(size, 'x');
}

PushBlock block(int number, size_t size = 100) {
  return {1'700'000'000'000 + number, 10, body_of(number, size)};
}

class PushQueueTest : public ::testing::Test {
 protected:
  std::unique_ptr<PushQueue> open(PushQueue::Limits limits = kRoomy) {
    auto queue = PushQueue::open(path_, limits);
    EXPECT_TRUE(queue.ok()) << queue.error().message;
    return *std::move(queue);
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  static std::vector<std::string> drain(PushQueue& queue) {
    std::vector<std::string> bodies;
    while (const auto front = *queue.front()) {
      bodies.push_back(front->block.body.substr(0, front->block.body.find('x')));
      EXPECT_EQ(front->block.at_ms, 1'700'000'000'000 + std::stoi(bodies.back()));
      EXPECT_TRUE(queue.remove(front->number));
    }
    return bodies;
  }

  http::TemporaryDirectory folder_;
  const std::string path_ = folder_ / "queue";
};

TEST_F(PushQueueTest, OldestFirstAndOverARestart) {
  {
    const auto queue = open();
    for (int i = 1; i <= 12; ++i) ASSERT_TRUE(queue->append(block(i)).ok());
    const auto first = *queue->front();
    ASSERT_TRUE(first);
    EXPECT_TRUE(queue->remove(first->number));
    EXPECT_FALSE(queue->remove(first->number)) << "it is gone";
  }
  const auto queue = open();
  EXPECT_EQ(queue->blocks(), 11u);
  EXPECT_EQ(queue->samples(), 110u);
  EXPECT_EQ(queue->bytes(), 11 * 4096u);
  EXPECT_EQ(queue->oldest_ms(), 1'700'000'000'002);
  ASSERT_TRUE(queue->append(block(13)).ok());
  EXPECT_THAT(drain(*queue), ElementsAre("2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13"));
  EXPECT_EQ(queue->bytes(), 0u);
  EXPECT_EQ(queue->samples(), 0u);
  EXPECT_THAT(files(), ElementsAre("gpu-ledger-push.lock"));
}

TEST_F(PushQueueTest, OnlyItsOwnerCanReadIt) {
  const auto queue = open();
  ASSERT_TRUE(queue->append(block(1)).ok());
  struct stat entry {};
  ASSERT_EQ(::stat(path_.c_str(), &entry), 0);
  EXPECT_EQ(entry.st_mode & 0777, 0700u);
  ASSERT_EQ(::stat((path_ + "/" + files().front()).c_str(), &entry), 0);
  EXPECT_EQ(entry.st_mode & 0777, 0600u);
}

TEST_F(PushQueueTest, AboveTheLimitTheOldestGo) {
  PushQueue::Limits limits;
  limits.on_disk = 3 * 4096;
  {
    const auto queue = open(limits);
    for (int i = 1; i <= 5; ++i) ASSERT_TRUE(queue->append(block(i)).ok());
    EXPECT_EQ(queue->over_limit(), 20u);
    EXPECT_EQ(files().size(), 4u);
  }
  limits.on_disk = 2 * 4096;  // another setting at the next start
  const auto queue = open(limits);
  EXPECT_EQ(queue->over_limit(), 10u);
  const auto taken = *queue->front();
  ASSERT_TRUE(queue->append(block(6)).ok());
  EXPECT_FALSE(queue->remove(taken->number)) << "dropped while it was sent";
  EXPECT_THAT(drain(*queue), ElementsAre("5", "6"));
}

TEST_F(PushQueueTest, InMemoryWithItsOwnLimit) {
  PushQueue::Limits limits;
  limits.in_memory = 250;
  const auto queue = *PushQueue::open("", limits);
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(queue->append(block(i)).ok());
  EXPECT_EQ(queue->over_limit(), 10u);
  EXPECT_THAT(drain(*queue), ElementsAre("2", "3"));
}

TEST_F(PushQueueTest, DamagedFilesAreSkippedAndForeignOnesKept) {
  {
    const auto queue = open();
    for (int i = 1; i <= 5; ++i) ASSERT_TRUE(queue->append(block(i)).ok());
  }
  const auto names = files();
  const auto path = [&](size_t i) { return path_ + "/" + names.at(i); };
  std::filesystem::resize_file(path(0), 0);   // power loss
  std::filesystem::resize_file(path(1), 60);  // half a file
  std::fstream(path(3), std::ios::in | std::ios::out).seekp(80) << '!';
  std::ofstream(path_ + "/." + names.at(4) + ".aB3xyz") << "of a killed writer";
  const std::vector<std::string> foreign = {"lock",
                                            "notes.txt",
                                            "block-1-2-3.push.bak",
                                            "block-7.push",
                                            "block-000000000001-1-x.push",
                                            ".block-9.push.abcdef"};
  for (const std::string& name : foreign) std::ofstream(path_ + "/" + name) << "mine";
  ASSERT_EQ(::symlink("/etc/passwd", (path_ + "/block-000000000077-5-5.push").c_str()), 0);
  {
    const auto queue = open();
    EXPECT_EQ(queue->blocks(), 5u);
    EXPECT_THAT(drain(*queue), ElementsAre("3", "5"));
    EXPECT_EQ(queue->unreadable(), 30u);
  }
  auto left = foreign;
  left.emplace_back("block-000000000077-5-5.push");
  EXPECT_THAT(files(), ::testing::UnorderedElementsAreArray(left));
}

// The number after it would be 0, and the newest block the first at the next start.
TEST_F(PushQueueTest, TheLastNumberThereIsIsForeign) {
  std::filesystem::create_directory(path_);
  const std::string name = "block-18446744073709551615-5-5.push";
  std::ofstream(path_ + "/" + name) << "mine";
  EXPECT_EQ(open()->blocks(), 0u);
  EXPECT_THAT(files(), ::testing::Contains(name));
}

TEST_F(PushQueueTest, ASecondProgramIsRefused) {
  const auto queue = open();
  const auto second = PushQueue::open(path_, kRoomy);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr("held by another program"));
  EXPECT_THAT(second.error().message, HasSubstr("a folder of its own"));
}

TEST_F(PushQueueTest, AFolderThatCannotBeUsed) {
  std::ofstream(folder_ / "file") << "x";
  for (const std::string& wrong : {folder_ / "file", folder_ / "no/such", std::string("/proc/none")}) {
    const auto queue = PushQueue::open(wrong, kRoomy);
    ASSERT_FALSE(queue.ok()) << wrong;
    EXPECT_THAT(queue.error().message, HasSubstr(wrong));
  }
}

TEST_F(PushQueueTest, WhatCannotBeReadNowIsNotLost) {
  const auto queue = open();
  ASSERT_TRUE(queue->append(block(1)).ok());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto now = queue->front();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(now.ok());
  EXPECT_THAT(now.error().message, HasSubstr("Too many open files"));
  EXPECT_EQ(queue->unreadable(), 0u);
  EXPECT_THAT(drain(*queue), ElementsAre("1"));
}

// The limit on files makes a write fail as a full disk does.
TEST_F(PushQueueTest, AFullDiskIsBridgedInMemory) {
  std::signal(SIGXFSZ, SIG_IGN);
  const auto queue = open();
  ASSERT_TRUE(queue->append(block(1)).ok());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{64, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status full = queue->append(block(2));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(full.ok());
  EXPECT_THAT(full.error().message, HasSubstr(path_));
  EXPECT_EQ(files().size(), 2u) << "nothing half-written stays";
  ASSERT_TRUE(queue->append(block(3)).ok());
  EXPECT_EQ(queue->samples_in_memory(), 10u);
  EXPECT_THAT(drain(*queue), ElementsAre("1", "2", "3"));
  EXPECT_EQ(queue->samples_in_memory(), 0u);
}

}  // namespace
}  // namespace gpuledger::app
