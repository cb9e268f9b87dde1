// SPDX-License-Identifier: Apache-2.0
#include "expose/upstream_write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exposition_parser.h"
#include "node_example.h"

namespace gpuledger::expose {
namespace {

using Labels = std::map<std::string, std::string>;

Owner pod_owner(const std::string& name) {
  Owner owner;
  owner.kind = OwnerKind::kPod;
  owner.name_space = "ml";
  owner.pod = name;
  owner.container = name + "-ctr";
  return owner;
}

// GPU 0: nobody. GPU 1: one pod was given it. GPU 2: pods a and b share it, and a process of the host. GPU 3: cut into
// the instances 7, which a has, and 8, which is free.
class UpstreamWriteTest : public ::testing::Test {
 protected:
  UpstreamWriteTest() {
    for (uint32_t i = 0; i < 4; ++i) add_gpu(i);
    give(1, "solo");
    give(2, "a", 0);
    give(2, "b", 1);
    run(2, pod_owner("a"), 1000 * kMiB, 60'000'000);
    run(2, pod_owner("b"), 3000 * kMiB, 30'000'000);
    run(2, Owner{}, 500 * kMiB, 10'000'000);
    auto cut = std::make_shared<DeviceDescription>(*cycle_.ledger.devices[3].description);
    for (const uint32_t gi : {7u, 8u}) {
      MigInstance& instance = cut->mig.emplace_back();
      instance.uuid = "MIG-" + std::to_string(gi);
      instance.id = {gi, 0};
      instance.memory_used = Bytes{100 * kMiB};
    }
    cycle_.ledger.devices[3].description = cycle_.batch.devices[3].description = cut;
    give(3, "a", std::nullopt, "MIG-7");
    run(3, pod_owner("a"), 100 * kMiB, 80'000'000, cut->mig[0]);
    cycle_.identities = std::make_shared<IdentityMap>(identities_);
  }

  void add_gpu(uint32_t index) {
    auto description = std::make_shared<DeviceDescription>();
    description->index = index;
    description->uuid.text = "GPU-" + std::to_string(index);
    DeviceSample sample;
    sample.description = description;
    sample.up = true;
    sample.power = Power::watts(100);
    sample.memory_used = Bytes{5000 * kMiB};
    cycle_.batch.devices.push_back(sample);
    DeviceAccount account;
    account.description = description;
    account.up = true;
    account.counted_before = Energy::millijoules(1'000'000);
    account.measured = account.last_step = Energy::millijoules(100'000);
    cycle_.ledger.devices.push_back(account);
  }

  void give(uint32_t gpu, const std::string& pod, std::optional<uint32_t> replica = {}, const std::string& mig = "") {
    identities_.allocations.push_back(
        {{"GPU-" + std::to_string(gpu)}, gpu, mig, "ml", pod, pod + "-ctr", "nvidia.com/gpu", replica, {}});
  }

  void run(uint32_t gpu, const Owner& owner, uint64_t bytes, int64_t microjoules, std::optional<MigInstance> mig = {}) {
    ProcessAccount process;
    process.gpu.text = "GPU-" + std::to_string(gpu);
    process.gpu_index = gpu;
    process.mig = mig;
    process.identity.owner = owner;
    process.memory = Bytes{bytes};
    process.last_step = process.booked.shared = Energy::microjoules(microjoules);
    cycle_.ledger.processes.push_back(process);
    cycle_.ledger.owners.push_back({owner, process.gpu, gpu, process.booked, 0, {}});
  }

  Exposition write(const std::string& text, Format format = Format::kText) {
    const auto parsed = parse_upstream(text);
    EXPECT_TRUE(parsed.ok());
    written_ = write_upstream(*parsed, cycle_, options_, format);
    auto read = parse_exposition(written_, format);
    EXPECT_TRUE(read.ok()) << read.error().message << "\n" << written_;
    return read.ok() ? *read : Exposition{};
  }

  static std::string uuid(int gpu) { return "uuid=\"GPU-" + std::to_string(gpu) + "\""; }

  Cycle cycle_;
  IdentityMap identities_;
  ExposeOptions options_;
  std::string written_;
};

// Byte for byte what the older add-on made of such a file.
TEST_F(UpstreamWriteTest, OlderForm) {
  (void)write(
      "# HELP dcgm_gpu_temp GPU temperature (in C).\n# TYPE dcgm_gpu_temp gauge\n"
      "dcgm_gpu_temp{gpu=\"1\",uuid=\"GPU-1\"} 33\n"
      "# HELP dcgm_memory_clock Memory clock frequency (in MHz).\n# TYPE dcgm_memory_clock gauge\n"
      "dcgm_memory_clock{gpu=\"1\",uuid=\"GPU-1\"} 810\n"
      "dcgm_gpu_temp{gpu=\"0\",uuid=\"GPU-0\"} 34.250\n");
  EXPECT_EQ(
      written_,
      "# HELP dcgm_gpu_temp GPU temperature (in C).\n# TYPE dcgm_gpu_temp gauge\n"
      "dcgm_gpu_temp{container_name=\"solo-ctr\",gpu=\"1\",pod_name=\"solo\",pod_namespace=\"ml\",uuid=\"GPU-1\"} 33\n"
      "dcgm_gpu_temp{gpu=\"0\",uuid=\"GPU-0\"} 34.250\n"
      "# HELP dcgm_memory_clock Memory clock frequency (in MHz).\n# TYPE dcgm_memory_clock gauge\n"
      "dcgm_memory_clock{container_name=\"solo-ctr\",gpu=\"1\",pod_name=\"solo\",pod_namespace=\"ml\",uuid=\"GPU-1\"} "
      "810\n");
}

TEST_F(UpstreamWriteTest, NewerForm) {
  const auto read = write(
      "DCGM_FI_DEV_GPU_TEMP{gpu=\"1\",UUID=\"GPU-1\",modelName=\"x \\\"y\\\\\",pod=\"\",namespace=\"\"} 33\n"
      "DCGM_FI_DEV_SM_CLOCK{gpu=\"1\",uuid=\"GPU-1\"} 7\n");
  EXPECT_EQ(read.value("DCGM_FI_DEV_GPU_TEMP",
                       {{"pod", "solo"}, {"namespace", "ml"}, {"container", "solo-ctr"}, {"modelName", "x \"y\\"}}),
            "33");
  // Its option for the older labels.
  EXPECT_EQ(read.value("DCGM_FI_DEV_SM_CLOCK", {{"pod_name", "solo"}}), "7");
}

TEST_F(UpstreamWriteTest, FindsTheGpuByUuidAndElseByIndex) {
  const auto read = write(
      "t{gpu=\"0\",UUID=\"GPU-1\"} 1\nt{gpu=\"1\"} 2\nt{gpu=\"1\",UUID=\"GPU-elsewhere\"} 3\n"
      "t{gpu=\"01\"} 4\nt 5\n");
  EXPECT_EQ(read.value("t", {{"gpu", "0"}, {"pod", "solo"}}), "1");
  EXPECT_EQ(read.value("t", {{"gpu", "1"}, {"pod", "solo"}}), "2");
  EXPECT_EQ(read.find("t", {{"pod", "solo"}}).size(), 2u);
  EXPECT_EQ(read.samples.size(), 5u);
}

TEST_F(UpstreamWriteTest, LabelsThatAreThereWin) {
  const auto read = write(
      "t{gpu=\"1\",UUID=\"GPU-1\",pod=\"theirs\"} 1\nt{gpu=\"1\",UUID=\"GPU-1\",pod=\"solo\",namespace=\"ml\","
      "container=\"solo-ctr\"} 2\nt{gpu=\"1\",UUID=\"GPU-1\"} 3\nt{gpu=\"1\",UUID=\"GPU-1\",container=\"c\"} 4\n");
  EXPECT_EQ(read.find("t", {{"pod", "theirs"}}).at(0)->labels.count("namespace"), 0u);
  // Ours would have been the same series again.
  EXPECT_EQ(read.value("t", {{"pod", "solo"}, {"container", "solo-ctr"}}), "2");
  EXPECT_EQ(read.value("t", {{"pod", "solo"}, {"container", "c"}}), "4");
  EXPECT_EQ(read.samples.size(), 3u);
}

TEST_F(UpstreamWriteTest, ASharedGpusReadingsAreRepeated) {
  const auto read = write("dcgm_gpu_temp{" + uuid(2) + "} 61\n");
  EXPECT_EQ(read.value("dcgm_gpu_temp", {{"pod_name", "a"}}), "61");
  EXPECT_EQ(read.value("dcgm_gpu_temp", {{"pod_name", "b"}}), "61");
  EXPECT_EQ(read.samples.size(), 2u);
}

TEST_F(UpstreamWriteTest, PowerIsSplitAndAddsUp) {
  const auto read = write("dcgm_power_usage{" + uuid(2) + "} 317.737\nDCGM_FI_DEV_POWER_USAGE{UUID=\"GPU-2\"} 100\n");
  EXPECT_EQ(read.value("DCGM_FI_DEV_POWER_USAGE", {{"pod", "a"}}), "60");
  EXPECT_EQ(read.value("DCGM_FI_DEV_POWER_USAGE", {{"pod", "b"}}), "30");
  EXPECT_EQ(read.micro_sum("DCGM_FI_DEV_POWER_USAGE"), 100'000'000);
  EXPECT_EQ(read.value("dcgm_power_usage", {{"pod_name", "a"}}), "190.6422");
  EXPECT_EQ(read.micro_sum("dcgm_power_usage"), 317'737'000);
  EXPECT_EQ(read.find("dcgm_power_usage").size(), 3u);
}

TEST_F(UpstreamWriteTest, MemoryIsSplitAndAddsUp) {
  auto read = write("dcgm_fb_used{" + uuid(2) + "} 5200\n");
  EXPECT_EQ(read.value("dcgm_fb_used", {{"pod_name", "a"}}), "1000");
  EXPECT_EQ(read.value("dcgm_fb_used", {{"pod_name", "b"}}), "3000");
  EXPECT_EQ(read.micro_sum("dcgm_fb_used"), 5'200'000'000);
  // Read before the pods took it: less for each, never more than there is.
  read = write("dcgm_fb_used{" + uuid(2) + "} 401.000000\n");
  EXPECT_EQ(read.value("dcgm_fb_used", {{"pod_name", "a"}}), "100");
  EXPECT_EQ(read.micro_sum("dcgm_fb_used"), 401'000'000);
}

TEST_F(UpstreamWriteTest, EnergyIsTheLedgersAndAddsUp) {
  const auto read = write("# TYPE dcgm_total_energy_consumption counter\ndcgm_total_energy_consumption{" + uuid(2) +
                          "} 1099000\ndcgm_total_energy_consumption{" + uuid(0) + "} 1099000\n");
  EXPECT_EQ(read.value("dcgm_total_energy_consumption", {{"uuid", "GPU-2"}, {"pod_name", "a"}}), "60000");
  EXPECT_EQ(read.micro_sum("dcgm_total_energy_consumption", {{"uuid", "GPU-2"}}), 1'100'000'000'000);
  EXPECT_EQ(read.value("dcgm_total_energy_consumption", {{"uuid", "GPU-0"}}), "1100000");
}

TEST_F(UpstreamWriteTest, Instances) {
  const std::string seven = "{UUID=\"GPU-3\",GPU_I_ID=\"7\",GPU_I_PROFILE=\"1g\"} ";
  const std::string eight = "{UUID=\"GPU-3\",GPU_I_ID=\"8\",GPU_I_PROFILE=\"1g\"} ";
  const auto read =
      write("T" + seven + "1\nT" + eight + "2\nT{UUID=\"GPU-3\",GPU_I_ID=\"9\"} 3\nT{UUID=\"GPU-3\"} 4\n" +
            "DCGM_FI_DEV_POWER_USAGE" + seven + "100\nDCGM_FI_DEV_POWER_USAGE" + eight + "100\n" +
            "DCGM_FI_DEV_FB_USED" + seven + "90\nDCGM_FI_DEV_FB_USED" + eight + "10\n");
  EXPECT_EQ(read.value("T", {{"GPU_I_ID", "7"}, {"pod", "a"}}), "1");
  EXPECT_EQ(read.find("T", {{"pod", "a"}}).size(), 2u);  // and the whole GPU's, where a is the only pod
  EXPECT_EQ(read.value("T", {{"GPU_I_ID", "9"}}), "3");
  // Said once for every instance, spent once.
  EXPECT_EQ(read.micro_sum("DCGM_FI_DEV_POWER_USAGE"), 100'000'000);
  EXPECT_EQ(read.value("DCGM_FI_DEV_POWER_USAGE", {{"GPU_I_ID", "7"}, {"pod", "a"}}), "80");
  EXPECT_EQ(read.value("DCGM_FI_DEV_FB_USED", {{"GPU_I_ID", "7"}, {"pod", "a"}}), "90");
  EXPECT_EQ(read.micro_sum("DCGM_FI_DEV_FB_USED"), 100'000'000);
}

TEST_F(UpstreamWriteTest, WhatCannotBeSplitStaysWhole) {
  const auto read = write("dcgm_power_usage{" + uuid(2) + "} 3e2\ndcgm_fb_used{" + uuid(2) + "} 5.5\n");
  EXPECT_EQ(read.value("dcgm_power_usage"), "3e2");
  EXPECT_EQ(read.value("dcgm_fb_used"), "5.5");
}

TEST_F(UpstreamWriteTest, ALostGpuGetsNoPods) {
  cycle_.ledger.devices[1].up = false;
  const auto read = write("dcgm_gpu_temp{" + uuid(1) + "} 33\n");
  EXPECT_TRUE(read.find("dcgm_gpu_temp", {{"pod_name", "solo"}}).empty());
  EXPECT_EQ(read.value("dcgm_gpu_temp"), "33");
}

TEST_F(UpstreamWriteTest, OpenMetricsAndTheNodesName) {
  options_.node = "n1";
  const auto read = write(
      "# HELP dcgm_power_violation Say \"why\" \\\\.\n# TYPE dcgm_power_violation counter\ndcgm_power_violation 5\n"
      "# TYPE x gauge\nx{node=\"theirs\"} 1\ny 2\n",
      Format::kOpenMetrics);
  EXPECT_EQ(read.value("dcgm_power_violation", {{"node", "n1"}}), "5");
  EXPECT_EQ(read.value("x", {{"node", "theirs"}}), "1");
  EXPECT_EQ(read.families.at("dcgm_power_violation").type, "unknown");
  EXPECT_EQ(read.families.at("y").type, "unknown");
}

// What it would have been without the limit, and what it says was left out of that.
TEST_F(UpstreamWriteTest, MaxSeriesKeepsThePodsThatDrawMost) {
  for (int i = 0; i < 40; ++i) run(2, pod_owner("p" + std::to_string(i)), kMiB, 10'000 + 1000 * i);
  std::string text = "dcgm_power_usage{" + uuid(2) + "} 100\ndcgm_fb_used{" + uuid(2) + "} 5000\n";
  for (int i = 0; i < 8; ++i) text += "t{" + uuid(2) + ",x=\"" + std::to_string(i) + "\"} 1\n";
  options_.max_series = 0;
  const size_t all = write(text).samples.size();
  EXPECT_EQ(all, 2 * 43u + 8 * 42u);
  for (const Format format : {Format::kText, Format::kOpenMetrics}) {
    options_.max_series = 100;
    const auto read = write(text, format);
    EXPECT_LE(read.samples.size(), 100u);
    EXPECT_GT(read.samples.size(), 80u) << "the room is used";
    EXPECT_EQ(read.value("gpu_ledger_series_left_out", {{"collector", "dcgm-exporter"}}),
              std::to_string(all - (read.samples.size() - 1)));
    for (const char* pod : {"a", "b"}) EXPECT_EQ(read.find("t", {{"pod_name", pod}}).size(), 8u) << pod;
    EXPECT_TRUE(read.find("t", {{"pod_name", "p0"}}).empty());
    EXPECT_EQ(read.micro_sum("dcgm_power_usage"), 100'000'000);
    EXPECT_EQ(read.micro_sum("dcgm_fb_used"), 5'000'000'000);
  }
  options_.max_series = all;
  const auto whole = write(text);
  EXPECT_EQ(whole.samples.size(), all);
  EXPECT_FALSE(whole.has("gpu_ledger_series_left_out")) << "nothing was";
}

TEST_F(UpstreamWriteTest, MaxSeriesHoldsWhereEvenTheirOwnLinesAreMore) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "t{x=\"" + std::to_string(i) + "\"} 1\n";
  options_.max_series = 100;
  const auto read = write(text);
  EXPECT_EQ(read.samples.size(), 100u);
  EXPECT_EQ(read.value("gpu_ledger_series_left_out"), "401");
}

TEST_F(UpstreamWriteTest, RepeatingHasAnEndWithoutALimitToo) {
  for (int i = 0; i < 40; ++i) run(2, pod_owner("p" + std::to_string(i)), kMiB, 1);
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "t{" + uuid(2) + ",x=\"" + std::to_string(i) + "\"} 1\n";
  const auto parsed = parse_upstream(text);
  ASSERT_TRUE(parsed.ok());
  options_.max_series = 0;
  const std::string written = write_upstream(*parsed, cycle_, options_, Format::kText);
  EXPECT_LE(std::count(written.begin(), written.end(), '\n'), 100'000 + 4);
}

}  // namespace
}  // namespace gpuledger::expose
