// SPDX-License-Identifier: Apache-2.0
#include "net/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/http/temporary_directory.h"

namespace gpuledger::net {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string error_of(const Credentials& who) {
  const auto header = authorization(who);
  return header.ok() ? "no error: " + *header : header.error().message;
}

TEST(Credentials, NoneTakeNoHeader) {
  EXPECT_EQ(*authorization({}), "");
}

TEST(Credentials, APasswordFileReplacesThePasswordOfTheUrl) {
  const http::TemporaryDirectory folder;
  EXPECT_EQ(*authorization({"ann:secret", "", ""}), "Basic YW5uOnNlY3JldA==");
  EXPECT_EQ(*authorization({"ann:wrong", folder.write("password", "secret\r\n"), ""}), "Basic YW5uOnNlY3JldA==");
  EXPECT_EQ(*authorization({"ann:", folder.write("spaced", " a b \n"), ""}), "Basic YW5uOiBhIGIg");
}

TEST(Credentials, ATokenComesBeforeUserAndPassword) {
  const http::TemporaryDirectory folder;
  EXPECT_EQ(*authorization({"ann:secret", "", folder.write("token", " abc\n")}), "Bearer abc");
}

// A line break in a secret would add header lines of its own.
TEST(Credentials, ABadFileIsNamed) {
  const http::TemporaryDirectory folder;
  const std::string none = folder / "none";
  const std::string empty = folder.write("empty", "\n");
  const std::string two = folder.write("two", "a\nX-More: 1\n");
  for (const std::string& file : {none, empty, two}) {
    EXPECT_THAT(error_of({"ann:", file, ""}), AllOf(StartsWith("password: "), HasSubstr(file)));
    EXPECT_THAT(error_of({"", "", file}), AllOf(StartsWith("token: "), HasSubstr(file)));
  }
  EXPECT_THAT(error_of({"", folder.write("password", "x"), ""}), HasSubstr("needs a user in the URL"));
}

}  // namespace
}  // namespace gpuledger::net
