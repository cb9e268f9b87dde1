// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace gpuledger {
namespace {

Result<std::unique_ptr<int>> made(int number) {
  if (number < 0) return Error{Code::kMalformed, "negative"};
  return std::make_unique<int>(number);
}

Status positive(int number) {
  if (number == 0) return Error{Code::kNotFound, "zero"};
  return ok_status();
}

Result<int> sum(int a, int b) {
  GL_TRY(first, made(a));
  GL_TRY(second, made(b));
  GL_TRY_STATUS(positive(*first + *second));
  return *first + *second;
}

Result<int> positive_or_seven(bool look, int number) {
  if (look)
    GL_TRY_STATUS(positive(number));
  else
    number = 7;
  return number;
}

TEST(Try, IsOneStatementBeforeAnElse) {
  EXPECT_EQ(*positive_or_seven(true, 3), 3);
  EXPECT_EQ(positive_or_seven(true, 0).error().message, "zero");
  EXPECT_EQ(*positive_or_seven(false, 0), 7);
}

TEST(Result, SaysWhatAFailureIsAbout) {
  const auto failed = sum(0, 0).about("the sum");
  EXPECT_EQ(failed.error().message, "the sum: zero");
  EXPECT_EQ(failed.error().code, Code::kNotFound);
  EXPECT_EQ(**made(3).about("a number"), 3);
}

TEST(Try, GivesTheValueOrReturnsTheError) {
  EXPECT_EQ(*sum(1, 2), 3);
  EXPECT_EQ(sum(1, -2).error().message, "negative");
  EXPECT_EQ(sum(-1, 2).error().code, Code::kMalformed);
  EXPECT_EQ(sum(0, 0).error().message, "zero");
}

}  // namespace
}  // namespace gpuledger
