// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace gpuledger {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "gl_file_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string at(const char* name) const { return (directory_ / name).string(); }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }
  static mode_t mode_of(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 07777;
  }

  fs::path directory_;
};

TEST_F(FileTest, WritesAndReplacesWithTheModeAskedForWhateverTheUmask) {
  const mode_t before = ::umask(077);
  const std::string path = at("metrics.prom");
  ASSERT_TRUE(write_file_atomically(path, "one\n").ok());
  EXPECT_EQ(mode_of(path), 0644u);
  const std::string big(3'000'000, 'x');
  ASSERT_TRUE(write_file_atomically(path, big, 0600).ok());
  ::umask(before);
  EXPECT_EQ(mode_of(path), 0600u);
  EXPECT_EQ(*read_file(path, big.size()), big);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, AReaderOfTheOldFileKeepsIt) {
  const std::string path = at("metrics.prom");
  ASSERT_TRUE(write_file_atomically(path, "old").ok());
  const UniqueFd old(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(write_file_atomically(path, "new").ok());
  char bytes[8] = {};
  ASSERT_EQ(::read(old.get(), bytes, sizeof bytes), 3);
  EXPECT_STREQ(bytes, "old");
}

TEST_F(FileTest, FailedRenameLeavesNothingBehind) {
  const std::string path = at("occupied");
  ASSERT_TRUE(fs::create_directories(path + "/inside"));
  const Status status = write_file_atomically(path, "x");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "cannot write " + path + ": Is a directory");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, OnlyARegularFileIsReplaced) {
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  ASSERT_TRUE(write_file_atomically(at("target"), "old").ok());
  fs::create_symlink(at("target"), at("link"));
  fs::create_symlink(at("nowhere"), at("dangling"));
  const std::string device = at("full");
  const bool may_make_devices = ::mknod(device.c_str(), S_IFCHR | 0666, makedev(1, 7)) == 0;
  for (const char* name : {"fifo", "link", "dangling", "full"}) {
    if (name == std::string("full") && !may_make_devices) continue;
    const auto kind = fs::symlink_status(at(name)).type();
    const Status status = write_file_atomically(at(name), "new");
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().code, Code::kMalformed) << name;
    EXPECT_TRUE(status.error().message.starts_with("cannot write " + at(name) + ": ")) << status.error().message;
    EXPECT_EQ(fs::symlink_status(at(name)).type(), kind) << name;
  }
  EXPECT_EQ(*read_file(at("target"), 10), "old");
  EXPECT_EQ(entries(), may_make_devices ? 5u : 4u) << "no temporary file is left";
}

TEST_F(FileTest, WhatAKilledWriterLeftIsRemoved) {
  ASSERT_TRUE(write_file_atomically(at("gpu.prom"), "x").ok());
  for (const char* name : {".gpu.prom.abc123", ".gpu.prom.XYZ789"}) std::ofstream(at(name)) << "half";
  for (const char* name : {".gpu.prom.abc1234", ".gpu.prom.abc", "gpu.prom.abc123", ".other.prom.abc123"})
    std::ofstream(at(name)) << "somebody else's";
  std::ofstream(at(".gpu.prom.living")) << "half";
  const UniqueFd living(::open(at(".gpu.prom.living").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(living.get(), LOCK_EX | LOCK_NB), 0);
  fs::create_directory(at(".gpu.prom.folder"));
  remove_left_temporaries(at("gpu.prom"));
  EXPECT_FALSE(fs::exists(at(".gpu.prom.abc123")));
  EXPECT_FALSE(fs::exists(at(".gpu.prom.XYZ789")));
  EXPECT_TRUE(fs::exists(at(".gpu.prom.living"))) << "somebody is writing it";
  EXPECT_EQ(entries(), 7u);
  remove_left_temporaries(at("no/such/folder/gpu.prom"));
}

TEST_F(FileTest, MissingDirectoryIsNamed) {
  const Status status = write_file_atomically(at("no/such/file"), "x");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kNotFound);
  EXPECT_EQ(status.error().message, "cannot write " + at("no/such/file") + ": No such file or directory");
  EXPECT_EQ(entries(), 0u);
}

TEST_F(FileTest, UnwritableDirectoryIsNamed) {
  // Root may write everywhere but here.
  const std::string path = ::geteuid() == 0 ? "/proc/self/gpu-ledger.prom" : at("locked/gpu-ledger.prom");
  if (::geteuid() != 0) {
    fs::create_directory(directory_ / "locked");
    fs::permissions(directory_ / "locked", fs::perms::owner_read | fs::perms::owner_exec);
  }
  const Status status = write_file_atomically(path, "x");
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(status.error().message.starts_with("cannot write " + path + ": ")) << status.error().message;
}

TEST_F(FileTest, ADirectoryIsNotAFileName) {
  EXPECT_EQ(write_file_atomically("/tmp/", "x").error().message, "cannot write /tmp/: not the name of a file");
}

TEST_F(FileTest, ReadIsBounded) {
  const std::string path = at("f");
  ASSERT_TRUE(write_file_atomically(path, std::string(20000, 'a')).ok());
  EXPECT_EQ(read_file(path, 20000)->size(), 20000u);
  const auto cut = read_file(path, 19999);
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().code, Code::kMalformed);
  EXPECT_EQ(cut.error().message, "cannot read " + path + ": larger than 19999 bytes");
  EXPECT_FALSE(read_file("/dev/zero", 100000).ok());
}

TEST_F(FileTest, ReadsProcAndEmptyFiles) {
  EXPECT_GT(read_file("/proc/self/status", 1 << 16)->size(), 0u);
  ASSERT_TRUE(write_file_atomically(at("empty"), "").ok());
  EXPECT_EQ(*read_file(at("empty"), 0), "");
}

TEST_F(FileTest, AFifoIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  const auto nobody_writes = read_file(at("fifo"), 10);
  ASSERT_FALSE(nobody_writes.ok());
  EXPECT_EQ(nobody_writes.error().code, Code::kMalformed);
  EXPECT_EQ(nobody_writes.error().message, "cannot read " + at("fifo") + ": not a regular file");
  const UniqueFd writer(::open(at("fifo").c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(read_file(at("fifo"), 10).ok());
}

TEST_F(FileTest, ReadErrorsNameThePath) {
  EXPECT_EQ(read_file(at("gone"), 10).error().code, Code::kNotFound);
  EXPECT_EQ(read_file(at("gone"), 10).error().message, "cannot read " + at("gone") + ": No such file or directory");
  EXPECT_EQ(read_file(directory_.string(), 10).error().message,
            "cannot read " + directory_.string() + ": Is a directory");
}

TEST(UniqueFd, ClosesOnce) {
  int raw = -1;
  {
    UniqueFd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    raw = fd.get();
    UniqueFd moved(std::move(fd));
    EXPECT_FALSE(fd);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(moved.get(), raw);
    EXPECT_NE(::fcntl(raw, F_GETFD), -1);
  }
  EXPECT_EQ(::fcntl(raw, F_GETFD), -1);
}

}  // namespace
}  // namespace gpuledger
