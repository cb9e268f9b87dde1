// SPDX-License-Identifier: Apache-2.0
#include "identity/proc_reader.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "support/proc_tree.h"

namespace gpuledger::identity {
namespace {

TEST(ParseStartTicks, CountsAfterTheLastParenthesis) {
  const auto plain = parse_start_ticks("12 (python3) S 1 2 3 0 -1 4194560 1 0 0 0 7 8 0 0 20 0 5 0 8812345 100");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(*plain, 8812345u);
  const auto hostile = parse_start_ticks("12 (a) R 9 9) (b)) S 1 2 3 0 -1 4194560 1 0 0 0 7 8 0 0 20 0 5 0 77 100");
  ASSERT_TRUE(hostile.ok());
  EXPECT_EQ(*hostile, 77u);
}

TEST(ParseStartTicks, RefusesWhatIsCutOrNoNumber) {
  EXPECT_FALSE(parse_start_ticks("").ok());
  EXPECT_FALSE(parse_start_ticks("12 (x").ok());
  EXPECT_FALSE(parse_start_ticks("12 (x) S 1 2 3").ok());
  EXPECT_FALSE(parse_start_ticks("12 (x) S 1 2 3 0 -1 4194560 1 0 0 0 7 8 0 0 20 0 5 0 soon 1").ok());
}

TEST(ParseBootTime, FindsTheLine) {
  EXPECT_EQ(*parse_boot_time("cpu 1\nbtime 1700000000\nx 2\n"), 1'700'000'000.0);
  EXPECT_EQ(*parse_boot_time("btime 5\n"), 5.0);
  EXPECT_FALSE(parse_boot_time("cpu 1\nxbtime 3\n").ok());
}

TEST(CleanName, NoControlCharactersAndBounded) {
  EXPECT_EQ(clean_name("python3"), "python3");
  EXPECT_EQ(clean_name("a\nb\x1b[31m\x7f"), "ab[31m");
  EXPECT_EQ(clean_name(std::string(500, 'x')).size(), 64u);
  EXPECT_EQ(clean_name("\n\t"), "unknown");
  EXPECT_EQ(clean_name(""), "unknown");
}

TEST(CleanName, AlwaysValidUtf8) {
  EXPECT_EQ(clean_name("h\xc3\xa9llo"), "h\xc3\xa9llo");
  EXPECT_EQ(clean_name("a\xff\xfe\x80z"), "a\xef\xbf\xbdz");
  EXPECT_EQ(clean_name("fifteen bytes \xc3"), "fifteen bytes \xef\xbf\xbd") << "the kernel cuts between bytes";
  EXPECT_EQ(clean_name("\xc0\xaf\xed\xa0\x80x"), "\xef\xbf\xbdx") << "overlong, surrogate";
  EXPECT_EQ(clean_name("a\xe2\x80\xae\xc2\x85z"), "az") << "turns the direction of writing; a control character";
  std::string accents = "x";
  for (int i = 0; i < 50; ++i) accents += "\xc3\xa9";
  EXPECT_EQ(clean_name(accents), accents.substr(0, 63)) << "cut between characters";
}

TEST(SlurmstepdTitle, HoldsTheJob) {
  using namespace std::string_literals;
  EXPECT_EQ(parse_slurmstepd_title("slurmstepd: [3385.0]"), 3385u);
  EXPECT_EQ(parse_slurmstepd_title("slurmstepd: [42.extern]\0\0\0"s), 42u);
  for (const char* title : {"", "slurmstepd", "slurmstepd: [", "slurmstepd: [x.0]", "slurmstepd: [5", "slurmstepd: [5]",
                            "slurmstepd: [4294967296.0]", "evil slurmstepd: [5.0]", "slurmstepd: [-5.0]"}) {
    EXPECT_EQ(parse_slurmstepd_title(title), std::nullopt) << title;
  }
}

TEST(ProcReader, FindsTheNumberOfASluid) {
  testing::ProcTree tree;
  const std::string step = "/system.slice/slurmstepd.scope/s0123456789ABC/step_0";
  tree.write("70/cmdline", "sleep");
  tree.write("71/cmdline", "slurmstepd: [815.0]");
  tree.write("cgroups" + step + "/slurm/cgroup.procs", "0\n69\n70\n71\n");
  tree.write("cgroups/empty/slurm/cgroup.procs", "");
  const ProcReader proc(tree.root());
  EXPECT_EQ(proc.read_slurm_job(tree.root() + "/cgroups", step), 815u);
  EXPECT_EQ(proc.read_slurm_job(tree.root() + "/cgroups", "/empty"), std::nullopt);
  EXPECT_EQ(proc.read_slurm_job(tree.root() + "/nowhere", step), std::nullopt);
}

TEST(ProcReader, LongCgroupFilesAreRead) {
  testing::ProcTree tree;
  tree.add(5, "x", 1, std::string(100'000, 'x'));
  EXPECT_EQ(ProcReader(tree.root()).read_cgroup(5)->size(), 100'000u);
}

// What a /proc of the given options, mounted from new namespaces, is said to show. Empty without the rights for it.
std::optional<ProcView> view_of_new_proc(int namespaces, const char* options, bool as_nobody) {
  testing::ProcTree tree;
  ::chmod(tree.root().c_str(), 0755);
  const auto in_child = [](const std::function<int()>& work) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(work());
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
  };
  constexpr int kNoRights = 100;
  const int result = in_child([&] {
    if (::unshare(CLONE_NEWNS | namespaces) != 0) return kNoRights;
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return kNoRights;
    return in_child([&] {  // a new pid namespace begins with the next child
      if (::mount("proc", tree.root().c_str(), "proc", 0, options) != 0) return kNoRights;
      // hidepid spares group 0 too.
      if (as_nobody && (::setgroups(0, nullptr) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0)) return kNoRights;
      const ProcView view = ProcReader(tree.root()).read_view();
      return (view.host_pids ? 1 : 0) | (view.all_processes ? 2 : 0) | (view.warning.empty() ? 4 : 0);
    });
  });
  if (result > 7) return std::nullopt;
  ProcView view;
  view.host_pids = (result & 1) != 0;
  view.all_processes = (result & 2) != 0;
  view.warning = (result & 4) != 0 ? "" : "said";
  return view;
}

TEST(ProcReader, NoticesAnotherPidNamespace) {
  const auto view = view_of_new_proc(CLONE_NEWPID, nullptr, false);
  if (!view) GTEST_SKIP() << "needs the right to make namespaces";
  EXPECT_FALSE(view->host_pids);
  EXPECT_TRUE(view->all_processes);
  EXPECT_EQ(view->warning, "said");
}

TEST(ProcReader, NoticesHiddenProcesses) {
  for (const char* options : {"hidepid=1", "hidepid=2"}) {
    const auto view = view_of_new_proc(0, options, true);
    if (!view) GTEST_SKIP() << "needs the right to make namespaces";
    EXPECT_FALSE(view->all_processes) << options;
    EXPECT_EQ(view->warning, "said");
    EXPECT_EQ(view->host_pids, ProcReader("/proc").read_view().host_pids) << options;
  }
  EXPECT_TRUE(view_of_new_proc(0, nullptr, true)->all_processes);
}

TEST(ProcReader, AFolderOfTheTestsIsTakenAsItIs) {
  testing::ProcTree tree;
  EXPECT_EQ(ProcReader(tree.root()).read_view().warning, "");
}

TEST(ProcReader, ReadsAProcess) {
  testing::ProcTree tree;
  tree.add(42, "ev) il", 500);
  ProcReader proc(tree.root());
  EXPECT_TRUE(proc.check().ok());
  EXPECT_EQ(*proc.read_start_ticks(42), 500u);
  EXPECT_EQ(*proc.read_name(42), "ev) il");
  const double ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  EXPECT_DOUBLE_EQ(*proc.start_time_seconds(500), 1'700'000'000.0 + 500 / ticks_per_second);
  EXPECT_FALSE(proc.read_start_ticks(43).ok());
}

TEST(ProcReader, SaysWhatIsWrongWithTheRoot) {
  const Status missing = ProcReader("/nonexistent/proc").check();
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("/nonexistent/proc/stat"), std::string::npos) << missing.error().message;
  testing::ProcTree tree;
  tree.write("stat", "nothing of the kind\n");
  EXPECT_FALSE(ProcReader(tree.root()).check().ok());
}

TEST(ProcReader, ReadsThisVeryProcess) {
  const ProcReader proc("/proc");
  const auto self = static_cast<Pid>(::getpid());
  ASSERT_TRUE(proc.check().ok());
  ASSERT_TRUE(proc.read_start_ticks(self).ok());
  EXPECT_GT(*proc.read_start_ticks(self), 0u);
  EXPECT_EQ(*proc.read_name(self), "unit_identity");
}

}  // namespace
}  // namespace gpuledger::identity
