// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/state_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "attribute/state/state_text.h"
#include "base/file.h"

namespace gpuledger::app {
namespace {

namespace fs = std::filesystem;
using attribute::write_state;

class StateFile : public ::testing::Test {
 protected:
  StateFile() {
    std::string pattern = (fs::temp_directory_path() / "gpu-ledger-state-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    file_ = folder_ + "/state";
  }
  ~StateFile() override { fs::remove_all(folder_); }

  static std::string text(uint64_t number) { return write_state({.number = number, .devices = {}}); }
  static void write(const std::string& path, const std::string& contents) {
    ASSERT_TRUE(write_file_atomically(path, contents).ok());
  }
  StateFound read() const {
    auto found = read_state_files(file_, 1'700'000'000);
    EXPECT_TRUE(found.ok());
    return found.value_or({});
  }
  void expect_set_aside(const std::string& path) const {
    EXPECT_FALSE(fs::exists(path));
    EXPECT_TRUE(fs::exists(path + ".broken-1700000000"));
  }

  std::string folder_;
  std::string file_;
};

// The recent file is written in every cycle, so it is never the older one.
TEST_F(StateFile, OfTwoWithOneNumberTheRecentOneCounts) {
  attribute::EngineState recent{.number = 7, .devices = {}};
  recent.devices.emplace_back().uuid = {"GPU-recent"};
  write(file_, text(7));
  write(recent_state_path(file_), write_state(recent));
  ASSERT_EQ(read().state.devices.size(), 1u);
  EXPECT_EQ(read().state.devices[0].uuid.text, "GPU-recent");
}

TEST_F(StateFile, NoneIsNoNews) {
  const StateFound found = read();
  EXPECT_TRUE(found.warnings.empty());
  EXPECT_EQ(found.state.number, 0u);
}

TEST_F(StateFile, TheYoungerOfTwoIsUsed) {
  write(file_, text(10));
  EXPECT_EQ(read().state.number, 10u);
  write(file_ + ".recent", text(13));
  EXPECT_EQ(read().state.number, 13u);
  write(file_, text(14));
  EXPECT_EQ(read().state.number, 14u);
  EXPECT_TRUE(read().warnings.empty());
}

TEST_F(StateFile, ABrokenOneIsSetAsideAndTheOtherUsed) {
  const std::string whole = text(10);
  write(file_, whole.substr(0, whole.size() - 3));
  write(file_ + ".recent", text(9));
  const StateFound found = read();
  EXPECT_EQ(found.state.number, 9u);
  ASSERT_EQ(found.warnings.size(), 1u);
  EXPECT_NE(found.warnings[0].find("damaged"), std::string::npos) << found.warnings[0];
  expect_set_aside(file_);
  EXPECT_TRUE(read().warnings.empty());
}

TEST_F(StateFile, ForeignFilesAreSetAside) {
  for (const char* contents : {"", "{\"hello\": 1}", "root:x:0:0:root:/root:/bin/sh\n", "gpu-ledger-state 2 later\n"}) {
    write(file_, contents);
    const StateFound found = read();
    EXPECT_EQ(found.warnings.size(), 1u) << contents;
    EXPECT_TRUE(found.state.devices.empty());
    expect_set_aside(file_);
  }
}

TEST_F(StateFile, AHugeFileIsNotReadWhole) {
  write(file_, text(10));
  fs::resize_file(file_, uint64_t{1} << 40);  // sparse
  const StateFound found = read();
  EXPECT_EQ(found.state.number, 0u);
  ASSERT_EQ(found.warnings.size(), 1u);
  EXPECT_NE(found.warnings[0].find("larger than"), std::string::npos) << found.warnings[0];
  expect_set_aside(file_);
}

TEST_F(StateFile, WhatIsNoFileIsLeftAlone) {
  fs::create_directory(file_);
  EXPECT_FALSE(read_state_files(file_, 1).ok());
  EXPECT_TRUE(fs::is_directory(file_));
  fs::remove(file_);
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_FALSE(read_state_files(file_, 1).ok());
  EXPECT_TRUE(fs::exists(file_));
}

TEST_F(StateFile, OneThatCannotBeRenamedIsLeft) {
  write(file_, "foreign");
  fs::permissions(folder_,
                  fs::perms::all & ~(fs::perms::owner_write | fs::perms::group_write | fs::perms::others_write));
  constexpr uid_t kNobody = 65534;  // root may rename anything
  const uid_t self = ::geteuid();
  ASSERT_EQ(::seteuid(self == 0 ? kNobody : self), 0);
  const StateFound found = read();
  ASSERT_EQ(::seteuid(self), 0);
  fs::permissions(folder_, fs::perms::owner_all);
  ASSERT_EQ(found.warnings.size(), 1u);
  EXPECT_NE(found.warnings[0].find("cannot rename"), std::string::npos) << found.warnings[0];
  EXPECT_TRUE(fs::exists(file_));
}

// A disk that fails, a limit of open files, rights that were changed: the state is good, and nobody may begin at 0.
TEST_F(StateFile, OneThatCannotBeReadIsAnErrorAndLeftAlone) {
  constexpr uid_t kNobody = 65534;  // root may read anything
  const uid_t self = ::geteuid();
  for (const std::string& name : {file_, recent_state_path(file_)}) {
    write(file_, text(7));
    write(recent_state_path(file_), text(8));
    fs::permissions(folder_, fs::perms::all);
    fs::permissions(name, fs::perms::none);
    fs::permissions(name == file_ ? recent_state_path(file_) : file_, fs::perms::all);
    ASSERT_EQ(::seteuid(self == 0 ? kNobody : self), 0);
    const auto found = read_state_files(file_, 1'700'000'000);
    ASSERT_EQ(::seteuid(self), 0);
    ASSERT_FALSE(found.ok()) << name;
    EXPECT_NE(found.error().message.find("cannot read " + name + ": "), std::string::npos) << found.error().message;
    EXPECT_NE(found.error().message.find("; its counters would start at 0"), std::string::npos);
    EXPECT_TRUE(fs::exists(name));
    fs::permissions(name, fs::perms::owner_all);
    EXPECT_EQ(read().state.number, 8u) << "and is used once it can be read";
  }
}

}  // namespace
}  // namespace gpuledger::app
