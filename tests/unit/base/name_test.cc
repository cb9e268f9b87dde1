// SPDX-License-Identifier: Apache-2.0
#include "base/name.h"

#include <gtest/gtest.h>

#include <sstream>

namespace gpuledger {
namespace {

TEST(Name, CopiesShareTheirText) {
  const Name first = std::string("a name that is too long to stand in the string itself");
  const Name second = first;
  EXPECT_EQ(&first.str(), &second.str());
  EXPECT_EQ(first, second);
}

TEST(Name, AnotherTextLeavesCopiesAlone) {
  Name first = "old";
  const Name second = first;
  first = "new";
  EXPECT_EQ(second, "old");
  EXPECT_EQ(first, "new");
}

TEST(Name, ComparesByText) {
  EXPECT_EQ(Name(std::string("pod")), Name("pod"));
  EXPECT_LT(Name("a"), Name("b"));
  EXPECT_LT(Name(), Name("a"));
  EXPECT_TRUE(Name().empty());
  EXPECT_EQ(Name(""), Name());
}

TEST(Name, ReadsAsAString) {
  const Name name = "pod";
  const std::string text = name;
  std::ostringstream out;
  out << name;
  EXPECT_EQ(text, "pod");
  EXPECT_EQ(out.str(), "pod");
  EXPECT_EQ("a " + name + "!", "a pod!");
  EXPECT_TRUE(name.starts_with("po"));
}

}  // namespace
}  // namespace gpuledger
