// SPDX-License-Identifier: Apache-2.0
#include "attribute/books/allocation_tracker.h"

#include <gtest/gtest.h>

namespace gpuledger::attribute {
namespace {

using std::chrono::seconds;

const GpuUuid kGpu{"GPU-a"};

Allocation given_to(std::string pod, std::optional<uint32_t> replica = {}) {
  Allocation allocation;
  allocation.gpu = kGpu;
  allocation.name_space = "ml";
  allocation.pod = std::move(pod);
  allocation.container = "main";
  allocation.replica = replica;
  return allocation;
}

SampleBatch batch_at(seconds time, UtilizationState utilization = UtilizationState::kKnown) {
  SampleBatch batch;
  batch.at.steady = time;
  DeviceSample device;
  auto description = std::make_shared<DeviceDescription>();
  description->uuid = kGpu;
  device.description = description;
  device.up = true;
  device.utilization = utilization;
  batch.devices.push_back(device);
  return batch;
}

ProcessAccount process_of(std::string pod, std::optional<double> sm, OwnerKind kind = OwnerKind::kPod) {
  ProcessAccount process;
  process.gpu = kGpu;
  process.identity.owner.kind = kind;
  process.identity.owner.name_space = kind == OwnerKind::kPod ? "ml" : "";
  process.identity.owner.pod = std::move(pod);
  if (sm) process.sm = Ratio{*sm};
  return process;
}

TEST(AllocationTracker, APodThatRunsNothingIsIdleFromTheFirstLook) {
  AllocationTracker tracker;
  EXPECT_EQ(tracker.advance(batch_at(seconds(10)), {given_to("a")}, {})[0].idle_for, seconds(0));
  EXPECT_EQ(tracker.advance(batch_at(seconds(70)), {given_to("a")}, {})[0].idle_for, seconds(60));
}

TEST(AllocationTracker, WorkEndsIt) {
  AllocationTracker tracker;
  (void)tracker.advance(batch_at(seconds(0)), {given_to("a")}, {});
  EXPECT_EQ(tracker.advance(batch_at(seconds(60)), {given_to("a")}, {process_of("a", 0.4)})[0].idle_for, seconds(0));
  EXPECT_EQ(tracker.advance(batch_at(seconds(65)), {given_to("a")}, {process_of("a", 0.0)})[0].idle_for, seconds(5));
}

TEST(AllocationTracker, ANeighboursWorkOnASharedGpuIsNotTheHolders) {
  AllocationTracker tracker;
  const std::vector<Allocation> both = {given_to("a", 0), given_to("b", 1)};
  (void)tracker.advance(batch_at(seconds(0)), both, {});
  const auto accounts =
      tracker.advance(batch_at(seconds(30)), both, {process_of("a", 0.9), process_of("", 0.9, OwnerKind::kHost)});
  EXPECT_EQ(accounts[0].idle_for, seconds(0));
  EXPECT_EQ(accounts[1].idle_for, seconds(30));
}

TEST(AllocationTracker, WhoCannotBeToldFromTheHolderCountsAsTheHolder) {
  AllocationTracker tracker;
  (void)tracker.advance(batch_at(seconds(0)), {given_to("a")}, {});
  EXPECT_EQ(tracker.advance(batch_at(seconds(9)), {given_to("a")}, {process_of("", 0.5)})[0].idle_for, seconds(0));
  const auto host = process_of("", 0.5, OwnerKind::kHost);
  EXPECT_EQ(tracker.advance(batch_at(seconds(18)), {given_to("a")}, {host})[0].idle_for, seconds(0));
}

TEST(AllocationTracker, AJobOrAContainerIsNotTheHolder) {
  for (const OwnerKind kind : {OwnerKind::kSlurmJob, OwnerKind::kContainer}) {
    AllocationTracker tracker;
    (void)tracker.advance(batch_at(seconds(0)), {given_to("a")}, {});
    const auto other = process_of("", 0.5, kind);
    EXPECT_EQ(tracker.advance(batch_at(seconds(9)), {given_to("a")}, {other})[0].idle_for, seconds(9));
  }
}

TEST(AllocationTracker, AJobIsIdleWhileOnlyOthersWork) {
  const auto given_to_job = [](std::string job) {
    Allocation allocation;
    allocation.gpu = kGpu;
    allocation.job = std::move(job);
    return allocation;
  };
  const auto process_of_job = [](std::string job) {
    ProcessAccount process = process_of("", 0.5, OwnerKind::kSlurmJob);
    process.identity.owner.job = std::move(job);
    return process;
  };
  AllocationTracker tracker;
  (void)tracker.advance(batch_at(seconds(0)), {given_to_job("7")}, {});
  const auto idle = [&](int at, const std::vector<ProcessAccount>& processes) {
    return tracker.advance(batch_at(seconds(at)), {given_to_job("7")}, processes)[0].idle_for;
  };
  EXPECT_EQ(idle(9, {process_of_job("8"), process_of("a", 0.5)}), seconds(9));
  EXPECT_EQ(idle(10, {process_of_job("7")}), seconds(0));
  EXPECT_EQ(idle(12, {}), seconds(2));
  EXPECT_EQ(idle(13, {process_of("", 0.5, OwnerKind::kHost)}), seconds(0)) << "it may be the job's";
}

TEST(AllocationTracker, AGpuThatCannotSayIsNotCalledIdle) {
  AllocationTracker tracker;
  (void)tracker.advance(batch_at(seconds(0)), {given_to("a")}, {});
  const auto blind = tracker.advance(batch_at(seconds(60), UtilizationState::kFailed), {given_to("a")}, {});
  EXPECT_EQ(blind[0].idle_for, std::nullopt);
  const auto behind_mps = tracker.advance(batch_at(seconds(61)), {given_to("a")}, {process_of("a", {})});
  EXPECT_EQ(behind_mps[0].idle_for, std::nullopt);
  EXPECT_EQ(tracker.advance(batch_at(seconds(62)), {given_to("a")}, {})[0].idle_for, seconds(1))
      << "the time in which nobody could look does not count";
}

TEST(AllocationTracker, GivenAnewBeginsAnew) {
  AllocationTracker tracker;
  (void)tracker.advance(batch_at(seconds(0)), {given_to("a")}, {});
  EXPECT_TRUE(tracker.advance(batch_at(seconds(50)), {}, {}).empty());
  EXPECT_EQ(tracker.advance(batch_at(seconds(60)), {given_to("a")}, {})[0].idle_for, seconds(0));
}

TEST(AllocationTracker, ANameGivenToAnotherPodBeginsAnew) {
  AllocationTracker tracker;
  const auto idle_of = [&](int64_t at, const char* uid) {
    Allocation allocation = given_to("a");
    allocation.pod_uid = Name(uid);
    return tracker.advance(batch_at(seconds(at)), {allocation}, {})[0].idle_for;
  };
  EXPECT_EQ(idle_of(0, ""), seconds(0));
  EXPECT_EQ(idle_of(10, "u-1"), seconds(10)) << "the same pod, whose uid is known now";
  EXPECT_EQ(idle_of(20, ""), seconds(20)) << "the API server does not answer";
  EXPECT_EQ(idle_of(30, "u-2"), seconds(0)) << "another pod of the name";
  EXPECT_EQ(idle_of(40, "u-2"), seconds(10));
}

}  // namespace
}  // namespace gpuledger::attribute
