// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace gpuledger::support {

// The kernel refuses a thread or a child to this process from now on, or gives them again.
inline void allow_threads(bool allow) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NPROC, &limit), 0);
  limit.rlim_cur = allow ? limit.rlim_max : 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NPROC, &limit), 0);
}

// Runs the body in a child to which threads are refused. True: no expectation in it failed.
//
// Where other tests of the program leave threads behind, as gRPC's do, the name of the suite ends in DeathTest: gtest
// runs such suites first, and so the child inherits no lock of another thread.
inline bool passes_without_threads(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobodyElse = 61'234;  // the limit does not hold for root
    const bool bound = ::geteuid() != 0 || ::setresuid(kNobodyElse, kNobodyElse, kNobodyElse) == 0;
    EXPECT_TRUE(bound);
    allow_threads(false);
    body();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace gpuledger::support
