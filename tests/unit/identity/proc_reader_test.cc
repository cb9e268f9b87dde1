#include "identity/proc_reader.h"

#include <gtest/gtest.h>

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
  ASSERT_TRUE(proc.read_start_ticks(self).ok());
  EXPECT_GT(*proc.read_start_ticks(self), 0u);
  EXPECT_EQ(*proc.read_name(self), "unit_identity");
}

}  // namespace
}  // namespace gpuledger::identity
