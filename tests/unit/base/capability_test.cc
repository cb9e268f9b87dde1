// SPDX-License-Identifier: Apache-2.0
#include "base/capability.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <thread>

namespace gpuledger {
namespace {

constexpr uint64_t kSysAdmin = 1ull << 21;

// As the kernel shows it for the thread that asks.
bool in_use() {
  std::ifstream status("/proc/thread-self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("CapEff:")) return (std::stoull(line.substr(7), nullptr, 16) & kSysAdmin) != 0;
  }
  ADD_FAILURE() << "no line CapEff";
  return false;
}

TEST(Capability, IsInUseOnlyWhileItIsRaised) {
  const bool before = in_use();
  std::thread([] {
    const bool permitted = sys_admin_is_permitted();
    lay_aside_sys_admin();
    EXPECT_FALSE(in_use());
    EXPECT_EQ(sys_admin_is_permitted(), permitted);
    {
      const RaisedSysAdmin raised;
      EXPECT_EQ(in_use(), permitted);
      const RaisedSysAdmin again;
      EXPECT_EQ(in_use(), permitted);
    }
    EXPECT_FALSE(in_use());
    std::thread([] { EXPECT_FALSE(in_use()) << "a thread has what the one that made it has"; }).join();
  }).join();
  EXPECT_EQ(in_use(), before) << "another thread's is its own";
}

}  // namespace
}  // namespace gpuledger
