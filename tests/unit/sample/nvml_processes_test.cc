// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "sample/nvml/nvml_processes.h"
#include "source_fixture.h"

namespace gpuledger::nvml {
namespace {

using ::testing::SizeIs;

std::vector<std::byte> written(const std::vector<ProcessInfo>& entries, size_t stride) {
  std::vector<std::byte> buffer(64 * kWidestEntry, kPoison);
  for (size_t i = 0; i < entries.size(); ++i) {
    std::byte* at = buffer.data() + i * stride;
    std::memcpy(at, &entries[i], std::min(stride, sizeof(ProcessInfo)));
    if (stride > sizeof(ProcessInfo)) std::memset(at + sizeof(ProcessInfo), 0, stride - sizeof(ProcessInfo));
  }
  return buffer;
}

const std::vector<ProcessInfo> kThree = {
    {101, 2ull << 30, kNoInstance, kNoInstance}, {102, 2ull << 20, kNoInstance, kNoInstance}, {4'000'000, 5, 3, 1}};

class Stride : public ::testing::TestWithParam<size_t> {};

TEST_P(Stride, IsSeenFromHowFarTheDriverWrote) {
  for (size_t count = 1; count <= kThree.size(); ++count) {
    const std::vector<ProcessInfo> entries(kThree.begin(), kThree.begin() + count);
    const auto parsed = parse_process_entries(written(entries, GetParam()), count, true);
    ASSERT_TRUE(parsed) << parsed.error().message;
    ASSERT_THAT(*parsed, SizeIs(count));
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ((*parsed)[i].pid, entries[i].pid);
      EXPECT_EQ((*parsed)[i].memory, Bytes{entries[i].usedGpuMemory});
    }
    const bool has_mig = count == 3 && GetParam() > 16;
    EXPECT_EQ(parsed->back().mig, has_mig ? std::optional(MigId{3, 1}) : std::nullopt);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Stride, ::testing::Values(16, 24, 32));

TEST(ProcessEntries, ADriverThatClearsTheRestOfTheBufferIsReadByWhatMakesSense) {
  std::vector<std::byte> buffer = written(kThree, 24);
  std::fill(buffer.begin() + 24 * 3, buffer.end(), std::byte{0});
  const auto parsed = parse_process_entries(buffer, 3, true);
  ASSERT_TRUE(parsed);
  EXPECT_EQ((*parsed)[1].pid, 102u);
  EXPECT_EQ((*parsed)[2].pid, 4'000'000u);
}

TEST(ProcessEntries, NonsenseIsRefused) {
  std::vector<std::byte> buffer(64 * kWidestEntry, std::byte{0xEE});
  const auto parsed = parse_process_entries(buffer, 2, false);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, Code::kMalformed);
  // More than there is room for.
  const std::vector<std::byte> good = written(kThree, 24);
  EXPECT_FALSE(parse_process_entries(std::span(good).first(2 * kWidestEntry), 3, false));
}

TEST(ProcessEntries, UnavailableMemoryIsAbsentAndPidZeroIsDropped) {
  const std::vector<ProcessInfo> entries = {
      {101, kValueNotAvailable, kNoInstance, kNoInstance}, {0, 7, kNoInstance, kNoInstance}, {103, 0, 0, 0}};
  const auto parsed = parse_process_entries(written(entries, 24), 3, false);
  ASSERT_TRUE(parsed);
  ASSERT_THAT(*parsed, SizeIs(2));
  EXPECT_FALSE((*parsed)[0].memory);
  EXPECT_EQ((*parsed)[1].memory, Bytes{0});
  EXPECT_FALSE((*parsed)[1].mig);  // MIG is off: instance 0 is no instance
}

TEST(ProcessEntries, NoEntries) {
  const auto parsed = parse_process_entries({}, 0, false);
  ASSERT_TRUE(parsed);
  EXPECT_THAT(*parsed, SizeIs(0));
}

TEST_F(SourceTest, ListsAreMergedByPid) {
  gpu().compute = {{10, 100, kNoInstance, kNoInstance}, {20, 50, kNoInstance, kNoInstance}};
  gpu().graphics = {{10, 300, kNoInstance, kNoInstance}};
  gpu().mps = {{20, 60, kNoInstance, kNoInstance}};
  const DeviceSample d = sample(true).devices[0];
  ASSERT_THAT(d.processes, SizeIs(2));
  const ProcessSample* both = find(d, 10);
  EXPECT_TRUE(both->listed && both->compute && both->graphics && !both->mps_client);
  EXPECT_EQ(both->memory, Bytes{300});
  const ProcessSample* client = find(d, 20);
  EXPECT_TRUE(client->compute && client->mps_client && !client->graphics);
  EXPECT_EQ(client->memory, Bytes{60});
}

TEST_F(SourceTest, TheWideEntriesOfEarlyR535AreUnderstood) {
  gpu().stride = 32;
  for (unsigned i = 0; i < 5; ++i) gpu().compute.push_back({100 + i, (i + 1) << 21, kNoInstance, kNoInstance});
  const SampleBatch batch = sample(true);
  ASSERT_THAT(batch.devices[0].processes, SizeIs(5));
  EXPECT_EQ(find(batch.devices[0], 103)->memory, Bytes{4 << 21});
  EXPECT_TRUE(batch.health.errors.empty());
}

TEST_F(SourceTest, OlderListCallsAreUsedWhereTheNewerAreMissing) {
  gpu().compute = {{10, 100, kNoInstance, kNoInstance}, {11, 200, kNoInstance, kNoInstance}};
  nvml_.missing = {"nvmlDeviceGetComputeRunningProcesses_v3"};
  EXPECT_EQ(find(sample(true).devices[0], 11)->memory, Bytes{200});
  EXPECT_EQ(nvml_.called("nvmlDeviceGetComputeRunningProcesses_v2"), 1);
  // There, but not in the kernel module below.
  gpu().fails["nvmlDeviceGetComputeRunningProcesses_v2"] = kFunctionNotFound;
  EXPECT_EQ(find(sample(true).devices[0], 11)->memory, Bytes{200});
  EXPECT_EQ(nvml_.called("nvmlDeviceGetComputeRunningProcesses"), 1);
}

TEST_F(SourceTest, AListThatOutgrowsTheBufferIsReadAgain) {
  for (unsigned i = 1; i <= 300; ++i) gpu().compute.push_back({i, i, kNoInstance, kNoInstance});
  gpu().grows_by = 3;
  const SampleBatch batch = sample(true);
  EXPECT_THAT(batch.devices[0].processes, SizeIs(303));
  EXPECT_EQ(nvml_.called("nvmlDeviceGetComputeRunningProcesses_v3"), 2);
  EXPECT_TRUE(batch.health.errors.empty());
}

TEST_F(SourceTest, AListThatNeverFitsIsGivenUpAfterFourTries) {
  gpu().compute = {{10, 1, kNoInstance, kNoInstance}};
  sample(true);
  nvml_.calls.clear();
  gpu().fails["nvmlDeviceGetComputeRunningProcesses_v3"] = kInsufficientSize;
  const SampleBatch batch = sample(true);
  EXPECT_EQ(nvml_.called("nvmlDeviceGetComputeRunningProcesses_v3"), 4);
  EXPECT_EQ(batch.health.errors.at("internal"), 1u);
  EXPECT_TRUE(batch.devices[0].up);
  EXPECT_THAT(batch.devices[0].processes, SizeIs(1)) << "the last list is the best there is";
}

TEST_F(SourceTest, BetweenScansTheLastListIsRepeated) {
  gpu().compute = {{10, 1, kNoInstance, kNoInstance}};
  sample(true);
  gpu().compute.clear();
  SampleBatch batch = sample(false);
  EXPECT_FALSE(batch.processes_scanned);
  EXPECT_THAT(batch.devices[0].processes, SizeIs(1));
  batch = sample(true);
  EXPECT_TRUE(batch.processes_scanned);
  EXPECT_THAT(batch.devices[0].processes, SizeIs(0));
}

TEST_F(SourceTest, AnUnknownPidAtWorkIsLookedUpAtOnce) {
  work(10, 50);
  gpu().compute = {{10, 1, kNoInstance, kNoInstance}};
  sample(true);
  work(20, 50);
  gpu().compute.push_back({20, 7, kNoInstance, kNoInstance});
  const SampleBatch batch = sample(false);
  const ProcessSample* p = find(batch.devices[0], 20);
  ASSERT_NE(p, nullptr);
  EXPECT_TRUE(p->listed && p->compute);
  EXPECT_EQ(p->memory, Bytes{7});
  EXPECT_DOUBLE_EQ(p->use.sm.value, 0.5);
  EXPECT_DOUBLE_EQ(find(batch.devices[0], 10)->use.sm.value, 0);
}

TEST_F(SourceTest, APidNoListKnowsIsStillReportedAndNotSearchedForever) {
  gpu().compute = {{30, 1, kNoInstance, kNoInstance}};
  sample(true);
  nvml_.calls.clear();
  for (int i = 0; i < 4; ++i) {
    work(20, 50);
    const SampleBatch batch = sample(false);
    ASSERT_THAT(batch.devices[0].processes, SizeIs(2));
    const ProcessSample& p = batch.devices[0].processes[0];  // by pid
    EXPECT_EQ(p.pid, 20u);
    EXPECT_FALSE(p.listed);
    EXPECT_FALSE(p.memory);
    EXPECT_DOUBLE_EQ(p.use.sm.value, 0.5);
  }
  EXPECT_EQ(nvml_.called("nvmlDeviceGetComputeRunningProcesses_v3"), 1);
}

}  // namespace
}  // namespace gpuledger::nvml
