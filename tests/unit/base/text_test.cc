// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

namespace gpuledger {
namespace {

TEST(TakeUntil, PartsAndWhatIsLeft) {
  std::string_view rest = "a;;bc";
  EXPECT_EQ(take_until(rest, ';'), "a");
  EXPECT_EQ(take_until(rest, ';'), "");
  EXPECT_EQ(rest, "bc");
  EXPECT_EQ(take_until(rest, ';'), "bc");
  EXPECT_EQ(rest, "");
  EXPECT_EQ(take_until(rest, ';'), "");
}

}  // namespace
}  // namespace gpuledger
