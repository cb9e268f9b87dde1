// SPDX-License-Identifier: Apache-2.0
#include "identity/device_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fact_table.h"

namespace gpuledger::identity {
namespace {

using Texts = std::vector<std::string>;
using Kind = DeviceRef::Kind;

const std::string kUuid = "0a1b2c3d-1111-2222-3333-444455556666";

// In the words of the table: which GPU, which part of it, which replica.
std::string gpu_of(const DeviceRef& ref) {
  const std::string number = ref.number ? std::to_string(*ref.number) : "";
  switch (ref.kind) {
    case Kind::kUnknown: return "unknown";
    case Kind::kInvalid: return "invalid";
    case Kind::kUuid: return "uuid:" + ref.uuid;
    case Kind::kMigUuid: return "nvml-parent";
    case Kind::kMinor: return "minor:" + number;
    case Kind::kIndex: return "index:" + number;
    case Kind::kTegra: return "tegra";
    case Kind::kAll: return "all";
  }
  return "";
}

std::string mig_of(const DeviceRef& ref) {
  std::string text;
  const auto add = [&](const char* key, const std::string& value) {
    text += (text.empty() ? "" : ",") + std::string(key) + ":" + value;
  };
  if (ref.kind == Kind::kMigUuid) add("uuid", ref.uuid);
  if (ref.gpu_instance) add("gi", std::to_string(*ref.gpu_instance));
  if (ref.compute_instance) add("ci", std::to_string(*ref.compute_instance));
  if (ref.mig_index) add("index", std::to_string(*ref.mig_index));
  if (ref.placement) {
    if (!ref.placement->profile.empty()) add("profile", ref.placement->profile);
    add("profile_id", std::to_string(ref.placement->profile_id));
    add("start", std::to_string(ref.placement->start));
    if (ref.placement->size) add("size", std::to_string(*ref.placement->size));
  }
  return text.empty() ? "-" : text;
}

std::string read_id(const std::string& id) {
  const DeviceRef ref = parse_device_id(id);
  return gpu_of(ref) + " " + mig_of(ref) + " " + (ref.replica ? std::to_string(*ref.replica) : "-");
}

TEST(ParseDeviceId, EveryRowOfTheTable) {
  auto rows = testing::read_own_table("device_ids.tsv");
  EXPECT_GT(rows.size(), 35u);
  for (auto& row : testing::read_outside_table("device_ids.tsv")) rows.push_back(std::move(row));
  for (const auto& row : rows) {
    ASSERT_GE(row.size(), 4u);
    EXPECT_EQ(read_id(row[0]), row[1] + " " + row[2] + " " + row[3]) << row[0];
  }
}

TEST(ParseDeviceId, Uuids) {
  EXPECT_EQ(read_id("GPU-" + kUuid), "uuid:GPU-" + kUuid + " - -");
  EXPECT_EQ(read_id("GPU-" + kUuid + "::12"), "uuid:GPU-" + kUuid + " - 12");
  EXPECT_EQ(read_id(kUuid), "uuid:GPU-" + kUuid + " - -");
  EXPECT_EQ(read_id("MIG-" + kUuid), "nvml-parent uuid:MIG-" + kUuid + " -");
  EXPECT_EQ(read_id("MIG-GPU-" + kUuid + "/7/0::2"), "uuid:GPU-" + kUuid + " gi:7,ci:0 2");
  EXPECT_EQ(read_id("GPU-" + kUuid + "::4294967296"), "uuid:GPU-" + kUuid + " - -");
  EXPECT_EQ(read_id("GPU-" + kUuid + "::"), "uuid:GPU-" + kUuid + " - -") << "no number, but still the GPU";
  EXPECT_EQ(read_id("MIG-" + kUuid + "::"), "nvml-parent uuid:MIG-" + kUuid + " -");
  EXPECT_EQ(read_id("::"), "unknown - -");
}

TEST(ParseDeviceId, Hami) {
  EXPECT_EQ(read_id("GPU-" + kUuid + "-9"), "uuid:GPU-" + kUuid + " - 9");
  EXPECT_TRUE(parse_device_id("GPU-" + kUuid + "-9").hami);
  EXPECT_FALSE(parse_device_id("GPU-" + kUuid + "::9").hami);
}

TEST(ParseDeviceId, MinorsAndIndexes) {
  EXPECT_EQ(read_id("nvidia3"), "minor:3 - -");
  EXPECT_EQ(read_id("nvidia3/gi5/vgpu2"), "minor:3 gi:5 2");
  EXPECT_EQ(read_id("gpu-4"), "minor:4 - -");
  EXPECT_EQ(read_id("gpu-4-mig-1g12gb-me-20-6"), "minor:4 profile:1g12gb-me,profile_id:20,start:6 -");
  EXPECT_EQ(read_id("gpu-4-mig-9-4-2"), "minor:4 profile_id:9,start:4,size:2 -");
  EXPECT_EQ(read_id("3"), "index:3 - -");
  EXPECT_EQ(read_id("gpu3"), "index:3 - -");
  EXPECT_EQ(read_id("3:1"), "index:3 index:1 -");
  EXPECT_EQ(read_id("mig3:1"), "index:3 index:1 -");
}

TEST(ParseDeviceId, Cdi) {
  EXPECT_EQ(read_id("nvidia.com/gpu=GPU-" + kUuid), "uuid:GPU-" + kUuid + " - -");
  EXPECT_EQ(read_id("k8s.device-plugin.nvidia.com/gpu=MIG-" + kUuid), "nvml-parent uuid:MIG-" + kUuid + " -");
  EXPECT_EQ(read_id("k8s.gpu.nvidia.com/claim=" + kUuid + "-gpu-2"), "minor:2 - -");
  EXPECT_EQ(read_id("k8s.gpu.nvidia.com/claim=gpu-2"), "unknown - -");
  EXPECT_EQ(read_id("amd.com/gpu=0"), "unknown - -");
  EXPECT_EQ(read_id("notnvidia.com/gpu=0"), "unknown - -");
  EXPECT_EQ(read_id("nvidia.com/gpu="), "unknown - -");
  EXPECT_EQ(read_id("gpu=0"), "unknown - -");
}

TEST(ParseDeviceId, WhatNobodyDocumentedIsUnknown) {
  for (const std::string& id : Texts{"GPU-" + kUuid.substr(1),
                                     "GPU-" + kUuid + "0",
                                     "gpu-" + kUuid,
                                     "GPU-" + kUuid + "::x",
                                     "GPU-" + kUuid + "::1::2",
                                     "GPU-" + kUuid + "-",
                                     " GPU-" + kUuid,
                                     "GPU-" + kUuid + "\n",
                                     "MIG-GPU-" + kUuid,
                                     "MIG-GPU-" + kUuid + "/1",
                                     "MIG-GPU-" + kUuid + "/1/",
                                     "MIG-GPU-" + kUuid + "/1/2/3",
                                     "nvidia",
                                     "nvidia0/",
                                     "nvidia0/gi",
                                     "nvidia0/vgpu",
                                     "nvidia-uvm",
                                     "gpu-",
                                     "gpu-0-",
                                     "gpu-0-mig-",
                                     "gpu-0-mig-1g-1",
                                     "gpu-vfio-0",
                                     "-1",
                                     "4294967296",
                                     "0:",
                                     ":0",
                                     "mig0",
                                     "gpu0:1",
                                     "ALL",
                                     std::string(1000, '1'),
                                     std::string("\0", 1)}) {
    EXPECT_EQ(read_id(id), "unknown - -") << id;
  }
  EXPECT_EQ(parse_device_id("").kind, Kind::kInvalid);
}

TEST(GpuResource, Names) {
  for (const char* name :
       {"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "nvidia.com/mig-2g.10gb.shared"}) {
    EXPECT_TRUE(is_gpu_resource(name)) << name;
  }
  for (const char* name :
       {"", "amd.com/gpu", "nvidia.com/", "nvidia.com/gpumem", "nvidia.com/mig-", "nvidia.com/mig-.shared",
        "xnvidia.com/gpu", "nvidia.com/gpu.shared.shared", "gpu.nvidia.com"}) {
    EXPECT_FALSE(is_gpu_resource(name)) << name;
  }
  EXPECT_TRUE(is_gpu_dra_driver("gpu.nvidia.com"));
  EXPECT_FALSE(is_gpu_dra_driver("compute-domain.nvidia.com"));
}

TEST(HamiAllocation, UuidsByContainer) {
  using ::testing::ElementsAre;
  using ::testing::IsEmpty;
  const std::string a = "GPU-" + kUuid;
  const std::string b = "GPU-ffffffff-1111-2222-3333-444455556666";
  EXPECT_THAT(parse_hami_allocation(a + ",NVIDIA,3000,0:" + b + ",NVIDIA,5000,30:;"), ElementsAre(ElementsAre(a, b)));
  EXPECT_THAT(parse_hami_allocation(";" + b + ",NVIDIA,1,2:;"), ElementsAre(IsEmpty(), ElementsAre(b)));
  EXPECT_THAT(parse_hami_allocation(a + "[1-0],NVIDIA,1,2:"), ElementsAre(ElementsAre(a)));
  EXPECT_THAT(parse_hami_allocation("rubbish,,:;;:::"), ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
  EXPECT_THAT(parse_hami_allocation(""), IsEmpty());
  EXPECT_LE(parse_hami_allocation(std::string(1'000'000, ';')).size(), 4096u);
}

}  // namespace
}  // namespace gpuledger::identity
