#include "app/textfile_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <vector>

#include "base/file.h"
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
    changed.wait_for(lock, 10s, [this] { return open; });
    written.emplace_back(text);
    return TextfileWriter::write_whole(path, text);
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
    return changed.wait_for(lock, 10s, [&] { return begun >= count; });
  }
};

class TextfileWriterTest : public ::testing::Test {
 protected:
  ~TextfileWriterTest() override { disk_->let_go(); }

  TextfileWriter::Write slow() {
    return [disk = disk_](const std::string& path, std::string_view text) { return disk->write(path, text); };
  }
  bool file_is_there() const { return std::filesystem::exists(path_); }
  static bool eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 1000 && !condition(); ++i) std::this_thread::sleep_for(5ms);
    return condition();
  }

  ::gpuledger::testing::ProcTree tree_;
  const std::string path_ = tree_.root() + "/gpu.prom";
  std::shared_ptr<SlowDisk> disk_ = std::make_shared<SlowDisk>();
};

TEST_F(TextfileWriterTest, NobodyWaitsForTheDiskAndTheLatestTextWins) {
  TextfileWriter writer(path_, slow());
  writer.post("first");
  ASSERT_TRUE(disk_->wait_for_begun(1));
  const auto begin = std::chrono::steady_clock::now();
  for (const char* text : {"second", "third", "fourth"}) writer.post(text);
  EXPECT_TRUE(writer.health().up);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  disk_->let_go();
  EXPECT_TRUE(eventually([&] {
    const auto text = read_file(path_, 100);
    return text.ok() && *text == "fourth";
  }));
  EXPECT_THAT(disk_->texts(), ElementsAre("first", "fourth"));
}

TEST_F(TextfileWriterTest, NothingIsWrittenAfterTheRemoval) {
  TextfileWriter writer(path_, slow());
  writer.post("first");
  ASSERT_TRUE(disk_->wait_for_begun(1));
  writer.post("second");
  EXPECT_FALSE(writer.remove(20ms)) << "the disk hangs";
  disk_->let_go();
  EXPECT_TRUE(eventually([&] { return disk_->texts().size() == 1 && !file_is_there(); }));
  writer.post("third");
  std::this_thread::sleep_for(50ms);
  EXPECT_THAT(disk_->texts(), ElementsAre("first"));
  EXPECT_FALSE(file_is_there());
}

TEST_F(TextfileWriterTest, RemovesWhatItWrote) {
  TextfileWriter writer(path_);
  writer.write_now("text");
  EXPECT_TRUE(file_is_there());
  EXPECT_TRUE(writer.remove(5s));
  EXPECT_FALSE(file_is_there());
}

TEST_F(TextfileWriterTest, WithoutRemovalTheFileStays) {
  { TextfileWriter(path_).write_now("text"); }
  EXPECT_TRUE(file_is_there());
}

TEST_F(TextfileWriterTest, HealthFollowsTheWrites) {
  TextfileWriter writer(tree_.root() + "/later/gpu.prom");
  writer.write_now("text");
  EXPECT_FALSE(writer.health().up);
  EXPECT_NE(writer.health().reason.find("/later/gpu.prom"), std::string::npos) << writer.health().reason;
  EXPECT_EQ(writer.health().errors.at("not_found"), 1);
  std::filesystem::create_directory(tree_.root() + "/later");
  writer.post("text");
  EXPECT_TRUE(eventually([&] { return writer.health().up; }));
  EXPECT_EQ(writer.health().reason, "");
  EXPECT_EQ(writer.health().errors.at("not_found"), 1) << "errors are counted for ever";
}

}  // namespace
}  // namespace gpuledger::app
