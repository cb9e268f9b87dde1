#include "http/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "http/listener.h"
#include "unit/http/temporary_directory.h"

namespace gpuledger::http {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(ParseListenAddress, ReadsEveryForm) {
  const auto everywhere = parse_listen_address(":9400");
  ASSERT_TRUE(everywhere);
  EXPECT_EQ(everywhere->host, "");
  EXPECT_EQ(everywhere->port, 9400);
  const auto v4 = parse_listen_address("127.0.0.1:0");
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->host, "127.0.0.1");
  EXPECT_EQ(v4->port, 0);
  const auto v6 = parse_listen_address("[::1]:9400");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->host, "::1");
  const auto name = parse_listen_address("node-1.example:65535");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->host, "node-1.example");
  EXPECT_EQ(name->port, 65535);
  const auto socket = parse_listen_address("unix:/run/gpu-ledger/http.sock");
  ASSERT_TRUE(socket);
  EXPECT_EQ(socket->unix_path, "/run/gpu-ledger/http.sock");
}

TEST(ParseListenAddress, NamesWhatIsWrong) {
  for (const std::string text : {"", "9400", ":", "host", "host:", ":http", ":65536", ":-1", ":94 00", "::1:9400",
                                 "[::1:9400", "[]:9400", "unix:", "unix:relative.sock"}) {
    const auto address = parse_listen_address(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code, Code::kMalformed);
    EXPECT_THAT(address.error().message, HasSubstr("\"" + text + "\""));
  }
  EXPECT_FALSE(parse_listen_address("unix:/" + std::string(200, 'x')));
}

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
