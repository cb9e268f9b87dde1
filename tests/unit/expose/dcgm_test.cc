// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "expose/collectors/dcgm.h"
#include "expose/expose.h"
#include "exposition_parser.h"
#include "node_example.h"
#include "support/batch_builder.h"

namespace gpuledger::expose {
namespace {

using gpuledger::testing::pod_owner;

Energy millijoules(int64_t count) {
  return Energy::millijoules(count);
}

// One GPU and who is on it, made by hand.
class DcgmTest : public ::testing::Test {
 protected:
  DcgmTest() {
    description_ = std::make_shared<DeviceDescription>();
    description_->uuid.text = "GPU-0";
    description_->model = "NVIDIA H100";
    description_->pci_bus_id = "00000000:07:00.0";
    description_->driver = "580.1";
    DeviceSample sample;
    sample.description = description_;
    sample.up = true;
    sample.power = Power::milliwatts(300'001);
    sample.memory_used = Bytes{1001 * kMiB};
    sample.memory_free = Bytes{2000 * kMiB + 5};
    sample.memory_reserved = Bytes{500 * kMiB};
    sample.temperature_celsius = 40;
    cycle_.batch.devices.push_back(sample);
    DeviceAccount account;
    account.description = description_;
    account.up = true;
    account.counted_before = millijoules(5'000'000);
    account.measured = millijoules(1'000'000);
    account.last_step = millijoules(300);
    cycle_.ledger.devices.push_back(account);
    options_.collectors = {"dcgm"};
    options_.host_name = "node-7";
  }

  DeviceSample& sample() { return cycle_.batch.devices[0]; }
  DeviceAccount& account() { return cycle_.ledger.devices[0]; }

  ProcessAccount& process(const Owner& owner, int64_t last_step_mj, std::optional<uint64_t> mib,
                          std::optional<MigInstance> mig = {}) {
    ProcessAccount process;
    process.gpu.text = "GPU-0";
    process.identity.owner = owner;
    process.identity.key.pid = ++pid_;
    process.last_step = millijoules(last_step_mj);
    if (mib) process.memory = Bytes{*mib * kMiB};
    process.mig = std::move(mig);
    cycle_.ledger.processes.push_back(process);
    return cycle_.ledger.processes.back();
  }
  void booked(const Owner& owner, int64_t mj) {
    OwnerAccount account;
    account.owner = owner;
    account.gpu.text = "GPU-0";
    account.booked.shared = millijoules(mj);
    cycle_.ledger.owners.push_back(account);
  }
  void give(const std::string& pod, const std::string& mig_uuid = "", const std::string& container = "") {
    auto identities = std::make_shared<IdentityMap>(*cycle_.identities);
    Allocation allocation;
    allocation.gpu.text = "GPU-0";
    allocation.mig_uuid = mig_uuid;
    allocation.name_space = "ml";
    allocation.pod = pod;
    allocation.container = container;
    identities->allocations.push_back(allocation);
    cycle_.identities = identities;
  }
  MigInstance instance(uint32_t gi, uint32_t ci, const std::string& profile, uint64_t used_mib) {
    MigInstance mig;
    mig.uuid = "MIG-" + std::to_string(gi) + "-" + std::to_string(ci);
    mig.id = {gi, ci};
    mig.profile = profile;
    mig.memory_total = Bytes{1000 * kMiB};
    mig.memory_used = Bytes{used_mib * kMiB};
    description_->mig_enabled = true;
    description_->mig.push_back(mig);
    return mig;
  }

  Exposition show(const std::string& collector = "dcgm") {
    options_.collectors = {collector};
    auto text = parse_exposition(write_gpu_text(cycle_, options_), Format::kText);
    EXPECT_TRUE(text.ok()) << text.error().message;
    auto open = parse_exposition(write_gpu_openmetrics(cycle_, options_), Format::kOpenMetrics);
    EXPECT_TRUE(open.ok()) << open.error().message;
    if (!text.ok()) return {};
    if (open.ok()) { EXPECT_EQ(open->samples.size(), text->samples.size()); }
    return *text;
  }
  // The device's reading, whoever has its parts.
  static void expect_sums(const Exposition& shown, const std::string& power, const std::string& memory,
                          const std::string& energy) {
    EXPECT_EQ(shown.micro_sum(power), 300'001'000);
    EXPECT_EQ(shown.micro_sum(memory), 1001'000'000);
    EXPECT_EQ(shown.micro_sum(energy), 6'000'000'000'000);
  }
  static void expect_legacy_sums(const Exposition& shown) {
    expect_sums(shown, "dcgm_power_usage", "dcgm_fb_used", "dcgm_total_energy_consumption");
  }
  static void expect_modern_sums(const Exposition& shown) {
    expect_sums(shown, "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION");
  }

  Cycle cycle_;
  ExposeOptions options_;
  std::shared_ptr<DeviceDescription> description_;
  Pid pid_ = 100;
};

TEST_F(DcgmTest, FamiliesAreInOrderOfTheirNames) {
  for (const auto families : {legacy_families(), modern_families()}) {
    for (size_t i = 1; i < families.size(); ++i) EXPECT_LT(families[i - 1].name, families[i].name);
    for (const DcgmFamily& family : families) {
      EXPECT_EQ(family.name.starts_with("dcgm_") || family.name.starts_with("DCGM_FI_"), true) << family.name;
    }
  }
}

TEST_F(DcgmTest, AGpuOfNobodyHasNoPodLabels) {
  const Exposition shown = show();
  ASSERT_EQ(shown.find("dcgm_gpu_temp").size(), 1u);
  EXPECT_EQ(shown.find("dcgm_gpu_temp")[0]->labels, (Labels{{"gpu", "0"}, {"uuid", "GPU-0"}}));
  EXPECT_EQ(shown.value("dcgm_power_usage"), "300.001");
  EXPECT_EQ(shown.value("dcgm_fb_used"), "1001");
  EXPECT_EQ(shown.value("dcgm_fb_free"), "2000");
  EXPECT_EQ(shown.value("dcgm_total_energy_consumption"), "6000000");
  EXPECT_EQ(shown.value("dcgm_xid_errors"), "0");
  EXPECT_FALSE(shown.has("dcgm_memory_clock")) << "not read";
}

TEST_F(DcgmTest, AGivenGpuIsThePodsThoughItRunsNothing) {
  give("lab-0", "", "notebook");
  const Exposition shown = show();
  const Labels pod{{"pod_name", "lab-0"}, {"pod_namespace", "ml"}, {"container_name", "notebook"}};
  EXPECT_EQ(shown.value("dcgm_power_usage", pod), "300.001");
  EXPECT_EQ(shown.value("dcgm_fb_used", pod), "1001");
  EXPECT_EQ(shown.value("dcgm_gpu_temp", pod), "40");
  EXPECT_EQ(shown.find("dcgm_gpu_temp").size(), 1u);
  EXPECT_EQ(shown.value("dcgm_total_energy_consumption", pod), "0") << "it was charged nothing";
  expect_legacy_sums(shown);
}

TEST_F(DcgmTest, SeveralPodsShareWhatAddsUpAndRepeatTheRest) {
  process(pod_owner("a"), 200, 600);
  process(pod_owner("b"), 70, 100);
  process(pod_owner("b"), 10, 50);
  process(Owner{}, 10, 200);
  booked(pod_owner("a"), 700'000);
  booked(pod_owner("b"), 200'000);
  booked(Owner{}, 50'000);
  give("c");
  const Exposition shown = show();
  EXPECT_EQ(shown.find("dcgm_gpu_temp").size(), 3u) << "no line without a pod";
  EXPECT_EQ(shown.value("dcgm_power_usage", {{"pod_name", "a"}}), "200.001");
  EXPECT_EQ(shown.value("dcgm_power_usage", {{"pod_name", "b"}}), "80");
  EXPECT_EQ(shown.value("dcgm_power_usage", {{"pod_name", "c"}}), "0");
  EXPECT_EQ(shown.find("dcgm_power_usage").size(), 4u);
  EXPECT_EQ(shown.value("dcgm_fb_used", {{"pod_name", "a"}}), "600");
  EXPECT_EQ(shown.value("dcgm_fb_used", {{"pod_name", "b"}}), "150");
  EXPECT_EQ(shown.value("dcgm_total_energy_consumption", {{"pod_name", "a"}}), "700000");
  EXPECT_EQ(shown.value("dcgm_total_energy_consumption", {{"pod_name", "b"}}), "200000");
  expect_legacy_sums(shown);
  const auto usage = shown.find("dcgm_power_usage");
  const auto nobodys = std::find_if(usage.begin(), usage.end(),
                                    [](const ParsedSample* sample) { return !sample->labels.contains("pod_name"); });
  ASSERT_NE(nobodys, usage.end());
  EXPECT_EQ((*nobodys)->value, "20");
}

TEST_F(DcgmTest, ProcessListsThatClaimMoreThanThereIsAreCutToIt) {
  process(pod_owner("a"), 100, 2000);
  process(pod_owner("b"), 100, 1000);
  const Exposition shown = show();
  EXPECT_EQ(shown.value("dcgm_fb_used", {{"pod_name", "a"}}), "667");
  EXPECT_EQ(shown.value("dcgm_fb_used", {{"pod_name", "b"}}), "334");
  expect_legacy_sums(shown);
}

TEST_F(DcgmTest, MemoryThatTheDriverCannotTellIsNobodys) {
  process(pod_owner("a"), 100, std::nullopt);
  process(pod_owner("b"), 100, 100);
  const Exposition shown = show();
  EXPECT_TRUE(shown.find("dcgm_fb_used", {{"pod_name", "a"}}).empty());
  EXPECT_EQ(shown.value("dcgm_fb_used", {{"pod_name", "b"}}), "100");
  expect_legacy_sums(shown);
}

TEST_F(DcgmTest, EnergyOfAPodThatLeftStays) {
  booked(pod_owner("gone"), 400'000);
  process(pod_owner("gone"), 0, std::nullopt).active = false;
  const Exposition shown = show();
  EXPECT_EQ(shown.value("dcgm_total_energy_consumption", {{"pod_name", "gone"}}), "400000");
  EXPECT_TRUE(shown.find("dcgm_power_usage", {{"pod_name", "gone"}}).empty());
  expect_legacy_sums(shown);
}

TEST_F(DcgmTest, APodWithoutANameIsNobody) {
  Owner owner = pod_owner("");
  owner.pod_uid = "0b6f1c52";
  process(owner, 100, 100);
  booked(owner, 1000);
  const Exposition shown = show();
  EXPECT_EQ(shown.find("dcgm_power_usage").size(), 1u);
  expect_legacy_sums(shown);
}

TEST_F(DcgmTest, ALostGpuKeepsItsEnergyAndLosesTheRest) {
  booked(pod_owner("a"), 400'000);
  account().up = false;
  sample().up = false;
  const Exposition shown = show();
  EXPECT_EQ(shown.families.size(), 1u);
  EXPECT_EQ(shown.micro_sum("dcgm_total_energy_consumption"), 6'000'000'000'000);
}

TEST_F(DcgmTest, WithoutAHardwareCounterThereIsNoEnergy) {
  account().counted_before.reset();
  EXPECT_FALSE(show().has("dcgm_total_energy_consumption"));
}

TEST_F(DcgmTest, TheLastXidIsShown) {
  account().xid_seen = {{31, Nanoseconds(5)}, {79, Nanoseconds(3)}};
  EXPECT_EQ(show().value("dcgm_xid_errors"), "31");
  EXPECT_EQ(show("dcgm-modern").value("DCGM_FI_DEV_XID_ERRORS"), "31");
  account().xid_seen.clear();
  EXPECT_FALSE(show("dcgm-modern").has("DCGM_FI_DEV_XID_ERRORS"));
}

TEST_F(DcgmTest, RatesHaveTheirOldUnits) {
  sample().traffic = {5'000'999.0, 7'000'000.0, 3.0 * 1024 * 1000 * 7, 1024.0 * 1000 * 2 + 900'000};
  const Exposition shown = show();
  EXPECT_EQ(shown.value("dcgm_pcie_tx_throughput"), "5000");
  EXPECT_EQ(shown.value("dcgm_pcie_rx_throughput"), "7000");
  EXPECT_EQ(shown.value("dcgm_nvlink_bandwidth_total"), "23");
  EXPECT_EQ(shown.families.at("dcgm_pcie_tx_throughput").type, "gauge");
  EXPECT_EQ(shown.families.at("dcgm_nvlink_bandwidth_total").type, "gauge");
}

TEST_F(DcgmTest, CountersWithoutTheSuffixAreOfUnknownTypeInOpenMetrics) {
  sample().vitals[Vital::kPowerViolation] = 12'345'678'901'234'567'890ull;
  sample().vitals[Vital::kEccCorrectedVolatile] = 3;
  const auto open = parse_exposition(write_gpu_openmetrics(cycle_, options_), Format::kOpenMetrics);
  ASSERT_TRUE(open.ok()) << open.error().message;
  EXPECT_EQ(open->families.at("dcgm_power_violation").type, "unknown");
  EXPECT_EQ(open->families.at("dcgm_ecc_sbe_volatile").type, "counter");
  EXPECT_EQ(open->value("dcgm_power_violation"), "12345678901234567890");
  EXPECT_EQ(show().families.at("dcgm_power_violation").type, "counter");
}

TEST_F(DcgmTest, ModernLabels) {
  process(pod_owner("a"), 100, 100);
  const Exposition shown = show("dcgm-modern");
  ASSERT_EQ(shown.find("DCGM_FI_DEV_GPU_TEMP").size(), 1u);
  EXPECT_EQ(shown.find("DCGM_FI_DEV_GPU_TEMP")[0]->labels, (Labels{{"gpu", "0"},
                                                                   {"UUID", "GPU-0"},
                                                                   {"pci_bus_id", "00000000:07:00.0"},
                                                                   {"device", "nvidia0"},
                                                                   {"modelName", "NVIDIA H100"},
                                                                   {"Hostname", "node-7"},
                                                                   {"DCGM_FI_DRIVER_VERSION", "580.1"},
                                                                   {"namespace", "ml"},
                                                                   {"pod", "a"}}));
  EXPECT_EQ(shown.value("DCGM_FI_DEV_FB_RESERVED"), "500");
  expect_modern_sums(shown);
}

TEST_F(DcgmTest, EveryGpuInstanceIsSeatedOnce) {
  const MigInstance first = instance(1, 0, "3g.40gb", 600);
  const MigInstance second = instance(1, 1, "3g.40gb", 600);  // of the same GPU instance: the same memory
  instance(5, 0, "1g.10gb", 100);
  sample().instance_activity[1].graphics = Ratio{0.5};
  process(pod_owner("a"), 150, 300, first);
  process(pod_owner("b"), 50, 200, second);
  process(Owner{}, 20, 40, first);
  booked(pod_owner("a"), 100);
  give("c", "MIG-5-0");
  const Exposition shown = show("dcgm-modern");
  const Labels a{{"GPU_I_ID", "1"}, {"GPU_I_PROFILE", "3g.40gb"}, {"pod", "a"}};
  EXPECT_EQ(shown.value("DCGM_FI_DEV_FB_USED", a), "300");
  EXPECT_EQ(shown.value("DCGM_FI_DEV_FB_USED", {{"GPU_I_ID", "1"}, {"pod", "b"}}), "200");
  EXPECT_EQ(shown.micro_sum("DCGM_FI_DEV_FB_USED", {{"GPU_I_ID", "1"}}), 600'000'000) << "once for both parts";
  EXPECT_EQ(shown.value("DCGM_FI_DEV_FB_USED", {{"GPU_I_ID", "5"}, {"pod", "c"}}), "100");
  EXPECT_EQ(shown.value("DCGM_FI_DEV_FB_FREE", a), "400");
  EXPECT_EQ(shown.value("DCGM_FI_DEV_POWER_USAGE", a), "150.001");
  EXPECT_EQ(shown.value("DCGM_FI_DEV_POWER_USAGE", {{"GPU_I_ID", "1"}, {"pod", "b"}}), "50");
  EXPECT_EQ(shown.micro_sum("DCGM_FI_DEV_POWER_USAGE", {{"GPU_I_ID", "1"}}), 220'001'000);
  EXPECT_EQ(shown.value("DCGM_FI_PROF_GR_ENGINE_ACTIVE", a), "0.5");
  EXPECT_EQ(shown.find("DCGM_FI_DEV_GPU_TEMP").size(), 3u);
  EXPECT_EQ(shown.value("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", a), "100");
  EXPECT_FALSE(shown.has("DCGM_FI_DEV_FB_RESERVED")) << "the GPU's, not an instance's";
  expect_modern_sums(shown);

  const Exposition legacy = show();
  EXPECT_EQ(legacy.value("dcgm_power_usage", {{"pod_name", "a"}}), "150.001");
  EXPECT_EQ(legacy.find("dcgm_gpu_temp").size(), 3u);
  expect_legacy_sums(legacy);
}

TEST_F(DcgmTest, NobodyWantsThem) {
  options_.collectors = {"process", "device"};
  EXPECT_EQ(write_gpu_text(cycle_, options_), "");
  EXPECT_EQ(write_gpu_openmetrics(cycle_, options_), "");
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// What the page of the exporter whose place this takes shows of two GPUs of one pod. A simulated node in that state
// gives the same lines, in one piece, but for a unit that the page had wrong.
TEST(OlderExporter, SampleOutputIsMatchedLineForLine) {
  struct Shown {
    std::string name, type, help, first, second;
  };
  const Shown kPage[] = {
      {"dcgm_gpu_temp", "gauge", "GPU temperature (in C).", "33", "34"},
      {"dcgm_gpu_utilization", "gauge", "GPU utilization (in %).", "0", "0"},
      {"dcgm_low_util_violation", "counter", "Throttling duration due to low utilization (in ns).", "0", "0"},
      {"dcgm_mem_copy_utilization", "gauge", "Memory utilization (in %).", "0", "0"},
      {"dcgm_memory_clock", "gauge", "Memory clock frequency (in MHz).", "810", "810"},
  };
  const auto labels = [](const char* gpu, const char* uuid) {
    return std::string("{container_name=\"pod1-ctr\",gpu=\"") + gpu +
           "\",pod_name=\"pod1\",pod_namespace=\"default\",uuid=\"" + uuid + "\"} ";
  };
  const std::string first = labels("0", "GPU-2b399198-c670-a848-173b-d3400051a200");
  const std::string second = labels("1", "GPU-9567a9e7-341e-bb7e-fcf5-788d8caa50f9");
  std::vector<std::string> wanted;
  for (const Shown& shown : kPage) {
    wanted.push_back("# HELP " + shown.name + " " + shown.help);
    wanted.push_back("# TYPE " + shown.name + " " + shown.type);
    wanted.push_back(shown.name + first + shown.first);
    wanted.push_back(shown.name + second + shown.second);
  }
  const auto ours = lines_of(GPU_LEDGER_SOURCE_DIR "/tests/golden/expected/older_dcgm.dcgm.prom");
  const auto found = std::search(ours.begin(), ours.end(), wanted.begin(), wanted.end());
  EXPECT_NE(found, ours.end()) << "not in one piece in tests/golden/expected/older_dcgm.dcgm.prom";
}

}  // namespace
}  // namespace gpuledger::expose
