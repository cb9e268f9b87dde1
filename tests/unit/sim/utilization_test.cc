// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <map>

#include "sim_driver.h"

namespace gpuledger::sim_test {
namespace {

using namespace nvml;

class UtilizationTest : public SimTest {};

constexpr char kPair[] = R"(
gpus: [{model: H200}]
processes:
  - {pid: 101, gpus: 0, memory: 1GiB, load: gemm}
  - {pid: 102, gpus: 0, memory: 1GiB, load: spin}
)";

TEST_F(UtilizationTest, OneTicketNamesOneProcessWithTheWholeGpusUtilization) {
  open(kPair);
  std::map<unsigned, int> tickets;
  constexpr int kTickets = 1000;
  for (int i = 1; i <= kTickets; ++i) {
    at(i * 0.2);
    const auto found = utilization(gpu(), wall(i * 0.2 - 0.2));
    ASSERT_EQ(found.size(), 1u) << i;
    EXPECT_GE(found[0].smUtil, 99u);
    EXPECT_EQ(found[0].timeStamp, wall(i * 0.2));
    ++tickets[found[0].pid];
  }
  ASSERT_EQ(tickets.size(), 2u);
  EXPECT_NEAR(tickets[101], kTickets / 2, 4 * 16);  // four standard deviations
}

TEST_F(UtilizationTest, ACallAveragesOverAllTicketsSinceLastSeen) {
  open(kPair);
  std::map<unsigned, int> tickets;
  for (int i = 1; i <= 5; ++i) {
    at(i * 0.2);
    ++tickets[utilization(gpu(), wall(i * 0.2 - 0.2))[0].pid];
  }
  const auto uses = utilization(gpu(), wall(0));
  EXPECT_EQ(uses.size(), tickets.size());
  for (const auto& use : uses) { EXPECT_EQ(use.smUtil, static_cast<unsigned>(20 * tickets[use.pid])) << use.pid; }
}

TEST_F(UtilizationTest, TheOlderCallRoundsUpAndTheNewerDown) {
  open(R"(
gpus: [{model: H200}]
processes:
  - {pid: 101, gpus: 0, load: {kind: gemm, busy: 99}, end: 0.2}
  - {pid: 102, gpus: 0, start: 0.2, load: {kind: gemm, busy: 99}}
)");
  at(0.4);
  const auto older = utilization(gpu(), 0);
  ASSERT_EQ(older.size(), 2u);
  EXPECT_EQ(older[0].smUtil, 50u);  // 99 of two tickets: 49.5
  ProcessUtilizationInfo entries[10];
  ProcessesUtilizationInfo newer{kProcessesUtilizationInfoVersion1, 10, 0, entries};
  ASSERT_EQ(nv.nvmlDeviceGetProcessesUtilizationInfo(gpu(), &newer), kSuccess);
  ASSERT_EQ(newer.processSamplesCount, 2u);
  EXPECT_EQ(entries[0].pid, 101u);
  EXPECT_EQ(entries[0].smUtil, 49u);
  EXPECT_EQ(entries[1].timeStamp, wall(0.4));
}

TEST_F(UtilizationTest, TheRingHolds71Tickets) {
  open("gpus: [{model: H200}]\nprocesses:\n  - {pid: 7, gpus: 0, load: gemm, end: 0.2}\n");
  at(71 * 0.2 + 0.1);
  ASSERT_EQ(utilization(gpu(), 0).size(), 1u);
  at(72 * 0.2);
  Return result = kSuccess;
  utilization(gpu(), 0, &result);
  EXPECT_EQ(result, kNotFound);
  const auto ring = samples(gpu(), 1);
  ASSERT_EQ(ring.size(), 71u);
  EXPECT_EQ(ring[0].timeStamp, wall(2 * 0.2));
  EXPECT_EQ(ring[70].timeStamp, wall(72 * 0.2));
}

TEST_F(UtilizationTest, NobodyActiveIsNotFound) {
  open("gpus: [{model: T4}]\nprocesses:\n  - {pid: 7, gpus: 0, memory: 1GiB}\n");
  at(10);
  Return result = kSuccess;
  utilization(gpu(), 0, &result);
  EXPECT_EQ(result, kNotFound);
  unsigned count = 0;
  EXPECT_EQ(nv.nvmlDeviceGetProcessUtilization(gpu(), nullptr, &count, 0), kInsufficientSize);
  EXPECT_GT(count, 0u);
}

// Seen on the real GPU: 12 % of the time and not one ticket, because both periods are in step.
TEST_F(UtilizationTest, WorkInStepWithTheSamplingIsNeverCaught) {
  open(R"(
gpus: [{model: H200}]
noise: 0
processes:
  - {pid: 1, gpus: 0, load: {kind: spin, busy: 99}}
  - {pid: 2, gpus: 0, load: {kind: gemm, busy: 99, duty: {period: 0.4, on: 0.1}}}
)");
  at(11);
  const auto found = utilization(gpu(), 0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pid, 1u);
  EXPECT_GT(counter(gpu()), 11 * 124'000u + 5'000u) << "it did work";
}

TEST_F(UtilizationTest, MemoryUtilizationIsTheMixOfAllOnWhomeverWasCaught) {
  open(R"(
gpus: [{model: H200}]
processes:
  - {pid: 1, gpus: 0, load: {kind: spin, busy: 100}}
  - {pid: 2, gpus: 0, load: {kind: copy, busy: 100}}
)");
  at(14);
  const auto uses = utilization(gpu(), 0);
  EXPECT_EQ(uses.size(), 2u);
  for (const auto& use : uses) { EXPECT_NEAR(static_cast<double>(use.memUtil) / use.smUtil, 0.5, 0.05) << use.pid; }
}

TEST_F(UtilizationTest, UnderMpsEveryTicketGoesToTheServer) {
  open(R"(
gpus: [{model: H100}]
processes:
  - {pid: 50, name: server, gpus: 0, mps: server, memory: 66MiB}
  - {pid: 51, gpus: 0, mps: client, load: {kind: fp32, busy: 40}}
  - {pid: 52, gpus: 0, mps: client, load: {kind: gemm, busy: 40}}
)");
  at(10);
  const auto found = utilization(gpu(), 0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pid, 50u);
  EXPECT_EQ(found[0].smUtil, 80u);
  std::vector<ProcessInfo> clients(8);
  unsigned count = 8;
  ASSERT_EQ(nv.nvmlDeviceGetMPSComputeRunningProcesses_v3(gpu(), &count, clients.data()), kSuccess);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(clients[0].pid, 51u);
  EXPECT_EQ(compute(gpu()).size(), 3u);
}

TEST_F(UtilizationTest, EncoderUseIsNamedOnItsOwn) {
  open(R"(
gpus: [{model: L4}]
processes:
  - {pid: 1, gpus: 0, load: gemm}
  - {pid: 2, gpus: 0, load: {kind: idle, encoder: 60, decoder: 40}}
)");
  at(5);
  unsigned encoder = 0, period = 0;
  ASSERT_EQ(nv.nvmlDeviceGetEncoderUtilization(gpu(), &encoder, &period), kSuccess);
  EXPECT_EQ(encoder, 60u);
  const auto uses = utilization(gpu(), 0);
  EXPECT_EQ(uses.size(), 2u);
  for (const auto& use : uses) {
    EXPECT_EQ(use.encUtil, use.pid == 2 ? 60u : 0u);
    EXPECT_EQ(use.decUtil, use.pid == 2 ? 40u : 0u);
    EXPECT_EQ(use.smUtil, use.pid == 1 ? 99u : 0u);
  }
}

TEST_F(UtilizationTest, GarbageOnRequest) {
  open(std::string(kPair) + "quirks: {utilization_garbage: true}\n");
  at(2);
  bool too_much = false, stranger = false;
  for (const auto& use : utilization(gpu(), 0)) {
    too_much |= use.smUtil > 100 && use.pid == 101;
    stranger |= use.pid != 101 && use.pid != 102;
  }
  EXPECT_TRUE(too_much);
  EXPECT_TRUE(stranger);
}

TEST_F(UtilizationTest, MigGpusCannotSay) {
  open(R"(
gpus: [{model: A100-40GB, mig: [{gi: 1, profile: 1g.5gb}]}]
processes: [{pid: 1, gpus: 0, mig: {gi: 1}, load: train}]
)");
  at(3);
  Return result = kSuccess;
  utilization(gpu(), 0, &result);
  EXPECT_EQ(result, kNotSupported);
  Utilization rates{};
  EXPECT_EQ(nv.nvmlDeviceGetUtilizationRates(gpu(), &rates), kNotSupported);
}

}  // namespace
}  // namespace gpuledger::sim_test
