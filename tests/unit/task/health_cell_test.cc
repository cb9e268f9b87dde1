// SPDX-License-Identifier: Apache-2.0
#include "task/health_cell.h"

#include <gtest/gtest.h>

namespace gpuledger::task {
namespace {

TEST(HealthCell, IsUndecidedUntilTheFirstAnswer) {
  HealthCell works("a"), fails("b"), counts("c");
  EXPECT_TRUE(works.get().undecided);
  EXPECT_FALSE(works.get().up);
  works.works();
  EXPECT_FALSE(works.get().undecided);
  fails.fails("timeout", "no answer");
  EXPECT_FALSE(fails.get().undecided);
  counts.counts("slow");
  EXPECT_TRUE(counts.get().undecided) << "an error beside the answer is none";
}

}  // namespace
}  // namespace gpuledger::task
