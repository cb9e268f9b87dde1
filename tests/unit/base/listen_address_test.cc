// SPDX-License-Identifier: Apache-2.0
#include "base/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuledger {
namespace {

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
  for (const std::string text :
       {"", "9400", ":", "host", "host:", ":http", ":65536", ":-1", ":94 00", "::1:9400", "[::1:9400", "[]:9400",
        "[:9400", "[name]:9400", "a b:1", "unix:", "unix:relative.sock", "unix:/folder/"}) {
    const auto address = parse_listen_address(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code, Code::kMalformed);
    EXPECT_THAT(address.error().message, StartsWith("\"" + text + "\" "));
  }
  EXPECT_FALSE(parse_listen_address("unix:/" + std::string(200, 'x')));
}

}  // namespace
}  // namespace gpuledger
