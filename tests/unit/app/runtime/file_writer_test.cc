// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/file_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <vector>

#include "base/file.h"
#include "support/eventually.h"
#include "support/proc_tree.h"

namespace gpuledger::app {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

// A disk that takes as long as the test wants. Shared with the writer's thread, which may outlive the writer.
struct SlowDisk {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  int begun = 0;
  std::vector<std::string> written;

  Status write(const std::string& path, std::string_view text) {
    std::unique_lock lock(mutex);
    ++begun;
    changed.notify_all();
    changed.wait(lock, [this] { return open; });
    written.emplace_back(text);
    return write_file_atomically(path, text);
  }
  void let_go() {
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
  std::vector<std::string> texts() {
    const std::lock_guard lock(mutex);
    return written;
  }
  bool wait_for_begun(int count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 1min, [&] { return begun >= count; });
  }
};

class FileWriterTest : public ::testing::Test {
 protected:
  ~FileWriterTest() override { disk_->let_go(); }

  FileWriter::Write slow() {
    return [disk = disk_](const std::string& path, std::string_view text) { return disk->write(path, text); };
  }
  bool file_is_there() const { return std::filesystem::exists(path_); }
  static FileWriter::Text text(const char* of) { return std::make_shared<const std::string>(of); }
  static Status quick(const std::string& path, std::string_view text) { return write_file_atomically(path, text); }

  ::gpuledger::testing::ProcTree tree_;
  const std::string path_ = tree_.root() + "/gpu.prom";
  std::shared_ptr<SlowDisk> disk_ = std::make_shared<SlowDisk>();
};

TEST_F(FileWriterTest, NobodyWaitsForTheDiskAndTheLatestTextWins) {
  FileWriter writer("file", path_, slow());
  writer.post(text("first"));
  ASSERT_TRUE(disk_->wait_for_begun(1));
  for (const char* each : {"second", "third", "fourth"}) writer.post(text(each));
  EXPECT_TRUE(writer.health().up);
  EXPECT_TRUE(disk_->texts().empty()) << "it has written nothing yet";
  disk_->let_go();
  EXPECT_TRUE(eventually([&] {
    const auto text = read_file(path_, 100);
    return text.ok() && *text == "fourth";
  }));
  EXPECT_THAT(disk_->texts(), ElementsAre("first", "fourth"));
}

TEST_F(FileWriterTest, NothingIsWrittenAfterTheRemoval) {
  FileWriter writer("file", path_, slow());
  writer.post(text("first"));
  ASSERT_TRUE(disk_->wait_for_begun(1));
  writer.post(text("second"));
  EXPECT_FALSE(writer.remove(20ms)) << "the disk hangs";
  disk_->let_go();
  EXPECT_TRUE(eventually([&] { return disk_->texts().size() == 1 && !file_is_there(); }));
  writer.post(text("third"));
  EXPECT_TRUE(writer.wait(1min));
  EXPECT_THAT(disk_->texts(), ElementsAre("first"));
  EXPECT_FALSE(file_is_there());
}

TEST_F(FileWriterTest, RemovesWhatItWrote) {
  FileWriter writer("file", path_, quick);
  writer.post(text("text"));
  EXPECT_TRUE(writer.wait(1min));
  EXPECT_TRUE(file_is_there());
  EXPECT_TRUE(writer.remove(1min));
  EXPECT_FALSE(file_is_there());
}

TEST_F(FileWriterTest, RemovesNothingThatItDidNotWrite) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  FileWriter refused("file", path_, quick);
  refused.post(text("text"));
  EXPECT_TRUE(refused.wait(1min));
  EXPECT_FALSE(refused.health().up);
  EXPECT_TRUE(refused.remove(1min));
  EXPECT_TRUE(file_is_there());
}

TEST_F(FileWriterTest, ClearsUpAfterAKilledOne) {
  const std::string left = tree_.root() + "/.gpu.prom.abc123";
  std::ofstream(left) << "half";
  FileWriter writer("file", path_, quick);
  writer.post(text("text"));
  EXPECT_TRUE(writer.wait(1min));
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST_F(FileWriterTest, FinishWritesWhatWaits) {
  FileWriter writer("file", path_, slow());
  writer.post(text("first"));
  ASSERT_TRUE(disk_->wait_for_begun(1));
  writer.post(text("second"));
  EXPECT_FALSE(writer.wait(20ms));
  disk_->let_go();
  EXPECT_TRUE(writer.finish(1min));
  EXPECT_THAT(disk_->texts(), ElementsAre("first", "second"));
  EXPECT_TRUE(file_is_there());
}

TEST_F(FileWriterTest, HealthFollowsTheWrites) {
  FileWriter writer("file", tree_.root() + "/later/gpu.prom", quick);
  writer.post(text("text"));
  ASSERT_TRUE(writer.wait(1min));
  EXPECT_EQ(writer.health().source, "file");
  EXPECT_FALSE(writer.health().up);
  EXPECT_NE(writer.health().reason.find("/later/gpu.prom"), std::string::npos) << writer.health().reason;
  EXPECT_EQ(writer.health().errors.at("not_found"), 1);
  std::filesystem::create_directory(tree_.root() + "/later");
  writer.post(text("text"));
  ASSERT_TRUE(writer.wait(1min));
  EXPECT_TRUE(writer.health().up);
  EXPECT_EQ(writer.health().reason, "");
  EXPECT_EQ(writer.health().errors.at("not_found"), 1) << "errors are counted for ever";
}

}  // namespace
}  // namespace gpuledger::app
