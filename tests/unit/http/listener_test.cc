// SPDX-License-Identifier: Apache-2.0
#include "http/listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "unit/http/temporary_directory.h"

namespace gpuledger::http {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

Result<Listener> open_listener(const std::string& text) {
  auto address = parse_listen_address(text);
  EXPECT_TRUE(address);
  return Listener::open(*address);
}

TEST(Listener, TellsTheRealPort) {
  const auto listener = open_listener("127.0.0.1:0");
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_THAT(listener->address(), AllOf(StartsWith("127.0.0.1:"), testing::Not(testing::EndsWith(":0"))));
}

TEST(Listener, SaysThatThePortIsInUse) {
  const auto first = open_listener("127.0.0.1:0");
  ASSERT_TRUE(first);
  const auto second = open_listener(first->address());
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message,
              AllOf(HasSubstr(first->address()), HasSubstr("already in use"), HasSubstr("--listen-address")));
  EXPECT_EQ(second.error().message.find('\n'), std::string::npos);
}

TEST(Listener, SaysThatTheAddressIsNotOurs) {
  const auto listener = open_listener("192.0.2.1:0");
  ASSERT_FALSE(listener);
  EXPECT_THAT(listener.error().message, HasSubstr("192.0.2.1:0"));
}

TEST(Listener, ReplacesASocketFileNobodyListensOn) {
  const TemporaryDirectory directory;
  const std::string path = directory / "http.sock";
  {
    auto listener = open_listener("unix:" + path);
    ASSERT_TRUE(listener) << listener.error().message;
    // A program that dies leaves its file: keep the file by a second name while the object removes the first.
    ASSERT_EQ(::link(path.c_str(), (path + ".kept").c_str()), 0);
  }
  EXPECT_FALSE(std::filesystem::exists(path)) << "removed at the end";
  ASSERT_EQ(::rename((path + ".kept").c_str(), path.c_str()), 0);
  const auto again = open_listener("unix:" + path);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->address(), "unix:" + path);
}

TEST(Listener, LeavesALivingSocketAndOtherFilesAlone) {
  const TemporaryDirectory directory;
  const std::string path = directory / "http.sock";
  const auto first = open_listener("unix:" + path);
  ASSERT_TRUE(first);
  const auto second = open_listener("unix:" + path);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, AllOf(HasSubstr(path), HasSubstr("already in use")));
  EXPECT_TRUE(std::filesystem::exists(path));

  const std::string file = directory / "important.txt";
  std::ofstream(file) << "keep";
  const auto third = open_listener("unix:" + file);
  ASSERT_FALSE(third);
  EXPECT_THAT(third.error().message, HasSubstr("not a socket"));
  EXPECT_EQ(std::filesystem::file_size(file), 4u);

  const auto fourth = open_listener("unix:" + (directory / "missing/http.sock"));
  ASSERT_FALSE(fourth);
  EXPECT_THAT(fourth.error().message, HasSubstr("directory does not exist"));
}

TEST(Listener, DoesNotRemoveASuccessorsFile) {
  const TemporaryDirectory directory;
  const std::string path = directory / "http.sock";
  {
    const auto first = open_listener("unix:" + path);
    ASSERT_TRUE(first);
    std::filesystem::rename(path, path + ".old");
    std::ofstream(path) << "somebody else's";
  }
  EXPECT_TRUE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace gpuledger::http
