// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/file.h"
#include "identity/resolver.h"
#include "resolver_batch.h"
#include "support/sleepers.h"

// The resolver on this machine's own /proc.
namespace gpuledger::identity {
namespace {

// Gives back what it changed.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{most, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST(ResolverOnThisMachine, MoreProcessesThanDescriptors) {
  testing::Sleepers sleepers(60);
  const std::vector<Pid> pids(sleepers.pids().begin(), sleepers.pids().end());
  SampleBatch batch = batch_of({});
  for (const Pid pid : pids) batch.devices[0].processes.emplace_back().pid = pid;
  const FewDescriptors few(64);
  Resolver resolver(ProcReader("/proc"), NodeDirectory{});
  const auto first = resolver.resolve(batch);
  const auto all_known = [&](const IdentityMap& map) {
    return std::all_of(pids.begin(), pids.end(),
                       [&](Pid pid) { return map.by_pid.contains(pid) && map.by_pid.at(pid).key.start_ticks > 0; });
  };
  EXPECT_TRUE(all_known(*first));
  std::vector<UniqueFd> open;
  while (open.size() < 20) open.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(open.back()) << "there is room for files and connections";
  batch.processes_scanned = false;
  EXPECT_FALSE(resolver.resolve(batch)->rescan_wanted);
  // Somebody else takes the rest: nothing can be read, and nobody is taken for dead.
  while (open.back()) open.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (const bool scanned : {false, true}) {
    batch.processes_scanned = scanned;
    const auto map = resolver.resolve(batch);
    EXPECT_TRUE(all_known(*map)) << scanned;
    EXPECT_FALSE(map->rescan_wanted) << scanned;
  }
  open.clear();
  batch.processes_scanned = false;
  for (const Pid pid : {pids.front(), pids.back()}) {
    sleepers.end(static_cast<pid_t>(pid));
    EXPECT_FALSE(resolver.resolve(batch)->by_pid.contains(pid)) << "watched or not";
  }
}

// The real /proc and the real kernel: the test starts a process and ends it.
TEST(ResolverOnThisMachine, AProcessThatEndsIsNoticedWithoutAScan) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  Resolver resolver(ProcReader("/proc"), NodeDirectory{});
  const Pid pid = static_cast<Pid>(child);
  const auto before = resolver.resolve(batch_of({pid}));
  ASSERT_TRUE(before->by_pid.contains(pid));
  EXPECT_GT(before->by_pid.at(pid).key.start_ticks, 0u);
  EXPECT_EQ(before, resolver.resolve(batch_of({pid}, false)));
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const auto after = resolver.resolve(batch_of({pid}, false));
  EXPECT_FALSE(after->by_pid.contains(pid));
  EXPECT_TRUE(after->rescan_wanted);
}

}  // namespace
}  // namespace gpuledger::identity
