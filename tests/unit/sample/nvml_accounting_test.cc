// SPDX-License-Identifier: Apache-2.0
#include "source_fixture.h"

namespace gpuledger::nvml {
namespace {

using ::testing::SizeIs;

class AccountingTest : public SourceTest {
 protected:
  AccountingTest() { gpu(); }
  // Began `ago` before the next scan, which comes in ten seconds.
  AccountingStats& life(unsigned pid, Nanoseconds ago, unsigned milliseconds, unsigned percent) {
    AccountingStats stats{};
    stats.gpuUtilization = percent;
    stats.maxMemoryUsage = 5000;
    stats.time = milliseconds;
    stats.startTime = static_cast<unsigned long long>((clock_.now().wall + 10s - ago).count() / 1000);
    return gpu().accounting[pid] = stats;
  }
  // Nine cycles and a scan.
  SampleBatch scan_after_ten_seconds() {
    for (int i = 0; i < 9; ++i) sample(false);
    return sample(true);
  }
};

TEST_F(AccountingTest, AProcessBornAndGoneBetweenTwoScansIsCaughtOnce) {
  life(5, -10s, 300, 50);  // before our time
  gpu().compute = {{80, 1, kNoInstance, kNoInstance}};
  ASSERT_THAT(sample(true).devices[0].processes, SizeIs(1));
  life(70, 4s, 600, 50);
  SampleBatch batch = scan_after_ten_seconds();
  ASSERT_THAT(batch.devices[0].processes, SizeIs(2));
  const ProcessSample& caught = batch.devices[0].processes[0];
  EXPECT_EQ(caught.pid, 70u);
  EXPECT_FALSE(caught.listed);
  EXPECT_EQ(caught.memory, Bytes{5000});
  EXPECT_DOUBLE_EQ(caught.use.sm.value, 0.3) << "0.3 s of the last second";
  EXPECT_THAT(sample(false).devices[0].processes, SizeIs(1));
  batch = scan_after_ten_seconds();
  EXPECT_THAT(batch.devices[0].processes, SizeIs(1));
  EXPECT_TRUE(batch.health.errors.empty());
}

TEST_F(AccountingTest, AskedAtScansOnlyAndNotAboutThoseWhoAreListed) {
  gpu().compute = {{80, 1, kNoInstance, kNoInstance}};
  life(80, -10s, 0, 10).isRunning = 1;
  life(70, 4s, 600, 50);
  sample(true);
  for (int i = 0; i < 9; ++i) sample(false);
  EXPECT_EQ(nvml_.called("nvmlDeviceGetAccountingPids"), 1);
  EXPECT_EQ(nvml_.called("nvmlDeviceGetAccountingStats"), 1);
}

TEST_F(AccountingTest, WhomAnotherReadingNamedIsNotBookedTwice) {
  sample(true);
  work(60, 100, 1s);  // caught by a utilization sample in the next cycle
  sample(false);
  gpu().compute = {{61, 1, kNoInstance, kNoInstance}};
  work(62, 100, 1s);
  sample(false);  // 62 is new, so the lists are read and 61 is found in them
  gpu().compute.clear();
  life(60, 9s, 800, 90);
  life(61, 9s, 800, 90);
  life(62, 9s, 800, 90);
  EXPECT_THAT(scan_after_ten_seconds().devices[0].processes, SizeIs(0));
  EXPECT_THAT(sample(true).devices[0].processes, SizeIs(0));
}

TEST_F(AccountingTest, ALongLifeHiddenBehindADeadOneIsNotTakenForAShortOne) {
  life(70, -20s, 100, 50);
  sample(true);
  // Of a pid used twice the driver tells the dead life; now the second one, older than our last scan, is dead too.
  life(70, 300s, 299'000, 50);
  EXPECT_THAT(scan_after_ten_seconds().devices[0].processes, SizeIs(0));
}

TEST_F(AccountingTest, APidUsedAgainIsANewLife) {
  life(70, -20s, 100, 50);
  sample(true);
  life(70, 3s, 500, 80);
  EXPECT_DOUBLE_EQ(sm(scan_after_ten_seconds(), 70), 0.4);
}

TEST_F(AccountingTest, NeverMoreThanAllOfTheTime) {
  sample(true);
  life(70, 8s, 6'000, 100);
  EXPECT_DOUBLE_EQ(sm(scan_after_ten_seconds(), 70), 1);
}

TEST_F(AccountingTest, TheRunningAndTheIdleAreLeftToTheOthers) {
  sample(true);
  life(70, 5s, 0, 100).isRunning = 1;
  life(71, 5s, 900, 0);
  life(72, 5s, 900, ~0u);  // not available
  EXPECT_THAT(scan_after_ten_seconds().devices[0].processes, SizeIs(0));
}

TEST_F(AccountingTest, MorePidsThanExpected) {
  sample(true);
  for (unsigned pid = 1000; pid < 1600; ++pid) life(pid, 5s, 10, 100);
  const SampleBatch batch = scan_after_ten_seconds();
  EXPECT_THAT(batch.devices[0].processes, SizeIs(600));
  EXPECT_TRUE(batch.health.errors.empty());
}

TEST_F(AccountingTest, AReadThatFailsIsMadeUpForByTheNext) {
  sample(true);
  life(70, 4s, 500, 100);
  gpu().fails["nvmlDeviceGetAccountingPids"] = kUnknown;
  SampleBatch batch = scan_after_ten_seconds();
  EXPECT_THAT(batch.devices[0].processes, SizeIs(0));
  EXPECT_EQ(batch.health.errors.at("internal"), 1u);
  gpu().fails.clear();
  EXPECT_DOUBLE_EQ(sm(scan_after_ten_seconds(), 70), 0.5);
}

TEST_F(AccountingTest, WhileUtilizationFailsNobodyIsBookedThatItMayNameLater) {
  sample(true);
  life(70, 4s, 500, 100);
  gpu().fails["nvmlDeviceGetProcessesUtilizationInfo"] = kUnknown;
  EXPECT_THAT(scan_after_ten_seconds().devices[0].processes, SizeIs(0));
  EXPECT_EQ(nvml_.called("nvmlDeviceGetAccountingPids"), 1);
  gpu().fails.clear();
  EXPECT_DOUBLE_EQ(sm(scan_after_ten_seconds(), 70), 0.5);
}

TEST_F(AccountingTest, StatisticsThatCouldNotBeReadMakeNobodyNew) {
  life(70, -10s, 500, 100);
  gpu().fails["nvmlDeviceGetAccountingStats"] = kUnknown;
  sample(true);
  gpu().fails.clear();
  EXPECT_THAT(scan_after_ten_seconds().devices[0].processes, SizeIs(0));
}

TEST_F(AccountingTest, OffIsOff) {
  gpu().accounting_on = false;
  sample(true);
  life(70, 4s, 500, 100);
  EXPECT_THAT(scan_after_ten_seconds().devices[0].processes, SizeIs(0));
  EXPECT_EQ(nvml_.called("nvmlDeviceGetAccountingPids"), 0);
  gpu().accounting_on = true;
  EXPECT_THAT(scan_after_ten_seconds().devices[0].processes, SizeIs(0)) << "the first read only learns";
}

}  // namespace
}  // namespace gpuledger::nvml
