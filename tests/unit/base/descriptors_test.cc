// SPDX-License-Identifier: Apache-2.0
#include "base/descriptors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

namespace gpuledger {
namespace {

TEST(Descriptors, TheSoftLimitIsRaisedAsFarAsTheHardOneAllows) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{256, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(descriptor_limit(), 256u);
  raise_descriptor_limit();
  EXPECT_EQ(descriptor_limit(), std::min<rlim_t>(before.rlim_max, 65'536));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  const size_t given = descriptor_limit();
  raise_descriptor_limit();
  EXPECT_GE(descriptor_limit(), given) << "never lowered";
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace gpuledger
