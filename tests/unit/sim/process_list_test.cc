// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <cstring>

#include "sim_driver.h"

namespace gpuledger::sim_test {
namespace {

using namespace nvml;

class ProcessListTest : public SimTest {};

constexpr char kThree[] = R"(
gpus: [{model: H200}]
processes:
  - {pid: 11, gpus: 0, memory: 1GiB}
  - {pid: 12, gpus: 0, memory: not available, kind: both}
  - {pid: 13, gpus: 0, memory: 3GiB, kind: graphics}
)";

TEST_F(ProcessListTest, SizesFirstThenTheList) {
  open(kThree);
  unsigned count = 0;
  EXPECT_EQ(nv.nvmlDeviceGetComputeRunningProcesses_v3(gpu(), &count, nullptr), kInsufficientSize);
  EXPECT_EQ(count, 2u);
  ProcessInfo entries[2];
  ASSERT_EQ(nv.nvmlDeviceGetComputeRunningProcesses_v3(gpu(), &count, entries), kSuccess);
  EXPECT_EQ(entries[0].pid, 11u);
  EXPECT_EQ(entries[0].usedGpuMemory, 1ull << 30);
  EXPECT_EQ(entries[0].gpuInstanceId, kNoInstance);
  EXPECT_EQ(entries[1].usedGpuMemory, kValueNotAvailable);
  count = 2;
  ASSERT_EQ(nv.nvmlDeviceGetGraphicsRunningProcesses_v3(gpu(), &count, entries), kSuccess);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(entries[1].pid, 13u);
}

TEST_F(ProcessListTest, AnEmptyListNeedsNoRoom) {
  open("gpus: [{model: T4}]\n");
  unsigned count = 0;
  EXPECT_EQ(nv.nvmlDeviceGetComputeRunningProcesses_v3(gpu(), &count, nullptr), kSuccess);
  EXPECT_EQ(count, 0u);
}

TEST_F(ProcessListTest, TheOldestCallHasEntriesOf16Bytes) {
  open(kThree);
  ProcessInfo_v1 entries[2];
  unsigned count = 2;
  ASSERT_EQ(nv.nvmlDeviceGetComputeRunningProcesses(gpu(), &count, entries), kSuccess);
  EXPECT_EQ(entries[1].pid, 12u);
}

TEST_F(ProcessListTest, EarlyR535WritesEntriesOf32Bytes) {
  open(std::string(kThree) + "quirks: {process_entry_size: 32}\n");
  alignas(8) char raw[2 * 32];
  std::memset(raw, 0x5A, sizeof raw);
  unsigned count = 2;
  ASSERT_EQ(nv.nvmlDeviceGetComputeRunningProcesses_v3(gpu(), &count, reinterpret_cast<ProcessInfo*>(raw)), kSuccess);
  ProcessDetail second;
  std::memcpy(&second, raw + 32, sizeof second);
  EXPECT_EQ(second.pid, 12u);
  EXPECT_EQ(second.computeInstanceId, kNoInstance);
  // Version 2 of the call kept its form.
  ProcessInfo entries[2];
  ASSERT_EQ(nv.nvmlDeviceGetComputeRunningProcesses_v2(gpu(), &count, entries), kSuccess);
  EXPECT_EQ(entries[1].pid, 12u);
}

TEST_F(ProcessListTest, TheListMayGrowBetweenTheCalls) {
  open(std::string(kThree) + "quirks: {list_grows_between_calls: true}\n");
  unsigned count = 0;
  ProcessInfo entries[4];
  ASSERT_EQ(nv.nvmlDeviceGetComputeRunningProcesses_v3(gpu(), &count, nullptr), kInsufficientSize);
  ASSERT_EQ(count, 2u);
  ASSERT_EQ(nv.nvmlDeviceGetComputeRunningProcesses_v3(gpu(), &count, entries), kInsufficientSize);
  ASSERT_EQ(count, 3u);
  ASSERT_EQ(nv.nvmlDeviceGetComputeRunningProcesses_v3(gpu(), &count, entries), kSuccess);
  EXPECT_EQ(count, 2u);
}

TEST_F(ProcessListTest, RepeatingProcessesGetFreshPids) {
  open("gpus: [{model: L4}]\nprocesses: [{pid: 500, gpus: 0, start: 1, repeat: {every: 4, lives: 3}}]\n");
  auto pid_at = [&](double t) {
    at(t);
    const auto list = compute(gpu());
    return list.size() == 1 ? list[0].pid : 0;
  };
  EXPECT_EQ(pid_at(0.9), 0u);
  EXPECT_EQ(pid_at(1.0), 500u);
  EXPECT_EQ(pid_at(3.9), 500u);
  EXPECT_EQ(pid_at(4.5), 0u);
  EXPECT_EQ(pid_at(5.0), 501u);
  EXPECT_EQ(pid_at(4001.0), 1500u);
}

TEST_F(ProcessListTest, MemoryOfTheGpuIsWhatItsProcessesHoldAndSome) {
  open("gpus: [{model: H200}]\nprocesses: [{pid: 1, gpus: 0, memory: 10GiB, end: 5}]\n");
  at(1);
  Memory before{}, after{};
  ASSERT_EQ(nv.nvmlDeviceGetMemoryInfo(gpu(), &before), kSuccess);
  EXPECT_EQ(before.total, 150754820096u);
  at(5);
  ASSERT_EQ(nv.nvmlDeviceGetMemoryInfo(gpu(), &after), kSuccess);
  EXPECT_EQ(before.used - after.used, 10ull << 30);
  Memory_v2 second{};
  second.version = kMemoryVersion2;
  ASSERT_EQ(nv.nvmlDeviceGetMemoryInfo_v2(gpu(), &second), kSuccess);
  EXPECT_EQ(second.used + second.reserved, after.used);
  second.version = 1;
  EXPECT_EQ(nv.nvmlDeviceGetMemoryInfo_v2(gpu(), &second), kArgumentVersionMismatch);
}

TEST_F(ProcessListTest, MigInstancesHaveHandlesAttributesAndProcesses) {
  open(R"(
gpus:
  - model: A100-40GB
    mig: [{gi: 1, profile: 3g.20gb}, {gi: 5, profile: 1g.5gb}]
processes:
  - {pid: 21, gpus: 0, mig: {gi: 1, ci: 0}, memory: 4GiB, load: train}
  - {pid: 22, gpus: 0, mig: {gi: 5, ci: 0}, memory: 1GiB}
events:
  - {at: 10, do: mig_destroy, gpu: 0, gi: 1}
  - {at: 20, do: mig_create, gpu: 0, gi: 2, profile: 2g.10gb}
)");
  unsigned current = 9, pending = 9;
  ASSERT_EQ(nv.nvmlDeviceGetMigMode(gpu(), &current, &pending), kSuccess);
  EXPECT_EQ(current, 1u);
  ASSERT_EQ(compute(gpu()).size(), 2u);
  EXPECT_EQ(compute(gpu())[1].gpuInstanceId, 5u);
  Device mig = nullptr;
  ASSERT_EQ(nv.nvmlDeviceGetMigDeviceHandleByIndex(gpu(), 0, &mig), kSuccess);
  char uuid[96], name[96];
  ASSERT_EQ(nv.nvmlDeviceGetUUID(mig, uuid, sizeof uuid), kSuccess);
  EXPECT_EQ(std::string(uuid).substr(0, 4), "MIG-");
  ASSERT_EQ(nv.nvmlDeviceGetName(mig, name, sizeof name), kSuccess);
  EXPECT_STREQ(name, "NVIDIA A100-SXM4-40GB MIG 3g.20gb");
  DeviceAttributes attributes{};
  ASSERT_EQ(nv.nvmlDeviceGetAttributes_v2(mig, &attributes), kSuccess);
  EXPECT_EQ(attributes.gpuInstanceSliceCount, 3u);
  EXPECT_NEAR(static_cast<double>(attributes.memorySizeMB), 20 * 1024, 200);
  ASSERT_EQ(compute(mig).size(), 1u);
  EXPECT_EQ(compute(mig)[0].pid, 21u);
  Memory memory{};
  ASSERT_EQ(nv.nvmlDeviceGetMemoryInfo(mig, &memory), kSuccess);
  EXPECT_EQ(memory.used, 4ull << 30);
  unsigned long long mj = 0;
  EXPECT_EQ(nv.nvmlDeviceGetTotalEnergyConsumption(mig, &mj), kNotSupported);

  at(10);
  EXPECT_EQ(nv.nvmlDeviceGetUUID(mig, uuid, sizeof uuid), kInvalidArgument);
  EXPECT_EQ(nv.nvmlDeviceGetMigDeviceHandleByIndex(gpu(), 0, &mig), kNotFound) << "a hole";
  EXPECT_EQ(compute(gpu()).size(), 1u);
  at(20);
  ASSERT_EQ(nv.nvmlDeviceGetMigDeviceHandleByIndex(gpu(), 2, &mig), kSuccess);
  unsigned id = 0;
  ASSERT_EQ(nv.nvmlDeviceGetGpuInstanceId(mig, &id), kSuccess);
  EXPECT_EQ(id, 2u);
}

TEST_F(ProcessListTest, OtherBuildsLackTheSymbolsTheyShould) {
  void* old = dlopen(sim_library("old/").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(old, nullptr) << dlerror();
  EXPECT_NE(dlsym(old, "nvmlDeviceGetProcessUtilization"), nullptr);
  EXPECT_NE(dlsym(old, "nvmlDeviceGetComputeRunningProcesses_v2"), nullptr);
  for (const char* name : {"nvmlDeviceGetProcessesUtilizationInfo", "nvmlDeviceGetComputeRunningProcesses_v3",
                           "nvmlDeviceGetMemoryInfo_v2", "nvmlGpmSampleGet"}) {
    EXPECT_EQ(dlsym(old, name), nullptr) << name;
  }
  void* broken = dlopen(sim_library("broken/").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(broken, nullptr) << dlerror();
  EXPECT_NE(dlsym(broken, "nvmlInit_v2"), nullptr);
  EXPECT_EQ(dlsym(broken, "nvmlDeviceGetCount_v2"), nullptr);
  dlclose(old);
  dlclose(broken);
}

}  // namespace
}  // namespace gpuledger::sim_test
