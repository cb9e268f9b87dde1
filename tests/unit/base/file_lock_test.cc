// SPDX-License-Identifier: Apache-2.0
#include "base/file_lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace gpuledger {
namespace {

class FileLockTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("file_lock_" + std::to_string(::getpid()));
  const std::string path_ = folder_ / "state.lock";
};

TEST_F(FileLockTest, OneAtATime) {
  auto first = FileLock::take(path_);
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(*first);
  EXPECT_FALSE(FileLock::take(path_).ok());
  first->reset();
  EXPECT_FALSE(std::filesystem::exists(path_)) << "an orderly end leaves nothing behind";
  const auto second = FileLock::take(path_);
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(*second);
}

TEST_F(FileLockTest, AFileThatIsLeftBehindHoldsNothing) {
  std::ofstream(path_) << "killed";
  const auto lock = FileLock::take(path_);
  ASSERT_TRUE(lock.ok());
  EXPECT_TRUE(*lock);
}

TEST_F(FileLockTest, WhatIsNoLockIsNotPassedBy) {
  std::ofstream(folder_ / "target") << "";
  std::filesystem::create_symlink(folder_ / "target", path_);
  EXPECT_FALSE(FileLock::take(path_).ok()) << "a link";
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_FALSE(FileLock::take(path_).ok()) << "a folder";
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(FileLock::take(path_).ok()) << "a pipe";
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(FileLockTest, OneWhoseFileWasRemovedIsNoLongerHeld) {
  auto first = FileLock::take(path_);
  ASSERT_TRUE(first.ok() && *first);
  EXPECT_TRUE((*first)->held());
  std::filesystem::remove(path_);
  EXPECT_FALSE((*first)->held());
  const auto second = FileLock::take(path_);
  ASSERT_TRUE(second.ok() && *second);
  EXPECT_FALSE((*first)->held()) << "the file is another now";
  first->reset();
  EXPECT_TRUE((*second)->held()) << "the first does not remove what is not its own";
}

TEST_F(FileLockTest, WhereNoneCanBeMadeOthersComplain) {
  const auto lock = FileLock::take(folder_ / "none" / "state.lock");
  ASSERT_TRUE(lock.ok());
  EXPECT_FALSE(*lock);
}

}  // namespace
}  // namespace gpuledger
