#include "base/file_lock.h"

#include <gtest/gtest.h>
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

TEST_F(FileLockTest, WhereNoneCanBeMadeOthersComplain) {
  const auto lock = FileLock::take(folder_ / "none" / "state.lock");
  ASSERT_TRUE(lock.ok());
  EXPECT_FALSE(*lock);
}

}  // namespace
}  // namespace gpuledger
