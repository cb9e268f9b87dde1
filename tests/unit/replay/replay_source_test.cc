// SPDX-License-Identifier: Apache-2.0
#include "sample/replay/replay_source.h"

#include <gmock/gmock.h>

#include "sample/replay/replay_identities.h"
#include "trace_text.h"

namespace gpuledger::replay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::SizeIs;

const ProcessSample* find(const SampleBatch& batch, Pid pid) {
  for (const ProcessSample& process : batch.devices.at(0).processes) {
    if (process.pid == pid) return &process;
  }
  return nullptr;
}

std::vector<SampleBatch> batches_of(const std::string& lines, Nanoseconds step = seconds(1)) {
  ReplaySource source(trace_of(kDeviceLine + lines), step);
  std::vector<SampleBatch> batches;
  while (!source.done() && batches.size() < 1000) batches.push_back(source.sample(false));
  return batches;
}

std::vector<int64_t> times_of(const std::vector<SampleBatch>& batches) {
  std::vector<int64_t> times;
  for (const SampleBatch& batch : batches) times.push_back(batch.at.steady / milliseconds(1));
  return times;
}

TEST(ReplaySource, StepsFromTheFirstReadingToTheLast) {
  EXPECT_THAT(times_of(batches_of(steady_power(3) + energy_line(3.1, 1) + energy_line(3.2, 2))),
              ElementsAre(0, 1000, 2000, 3000, 3200));
  EXPECT_THAT(times_of(batches_of(steady_power(1), milliseconds(500))), ElementsAre(0, 500, 1000));
  EXPECT_THAT(times_of(batches_of(energy_line(0.5, 1))), ElementsAre(500));
}

TEST(ReplaySource, TakesTheReadingNearestToTheStep) {
  // Readings that come late do not push the later steps back.
  EXPECT_THAT(times_of(batches_of(energy_line(0.007, 1) + energy_line(0.96, 2) + energy_line(1.09, 3) +
                                  energy_line(1.95, 4) + energy_line(2.01, 5) + energy_line(3, 6))),
              ElementsAre(7, 960, 2010, 3000));
}

TEST(ReplaySource, GoesOnAfterAGap) {
  EXPECT_THAT(times_of(batches_of(steady_power(1) + energy_line(60.2, 1) + energy_line(61, 2) + energy_line(62, 3))),
              ElementsAre(0, 1000, 60200, 61000, 62000));
}

TEST(ReplaySource, ReadingsOfOneMomentAreOneStep) {
  EXPECT_THAT(times_of(batches_of(energy_line(0, 1) + energy_line(0, 2) + energy_line(0, 3) + energy_line(2, 4))),
              ElementsAre(0, 2000));
}

TEST(ReplaySource, SaysTheCounterOfItsMoment) {
  const auto batches = batches_of(steady_power(2));
  ASSERT_THAT(batches, SizeIs(3));
  const DeviceSample& device = batches[1].devices.at(0);
  EXPECT_TRUE(device.up);
  EXPECT_EQ(device.energy_counter, Energy::millijoules(100'000));
  EXPECT_EQ(device.power, Power::watts(80));
  EXPECT_EQ(device.memory_total, Bytes{100});
  EXPECT_EQ(device.description->uuid.text, "GPU-0");
  EXPECT_EQ(device.description->power_limit, Power::watts(700));
  EXPECT_EQ(device.utilization, UtilizationState::kKnown);
  EXPECT_EQ(device.activity, std::nullopt);
  EXPECT_EQ(device.temperature_celsius, std::nullopt);
}

TEST(ReplaySource, HandsOnWhoWasOnTheEngineWhenTheTraceIsComplete) {
  std::string lines = steady_power(3);
  for (int i = 1; i <= 30; ++i) {
    lines += "{\"k\":\"residency\",\"t\":" + std::to_string(i / 10.0) +
             ",\"w\":0.02,\"p\":[[7,[20.0,20.0,20.0,20.0,20.0]]]}\n";
  }
  const auto batches = batches_of(lines);
  ASSERT_THAT(batches, SizeIs(4));
  EXPECT_THAT(batches[0].devices.at(0).residency, SizeIs(0));
  const auto& first = batches[1].devices.at(0).residency;
  const auto& second = batches[2].devices.at(0).residency;
  ASSERT_THAT(first, SizeIs(44));  // what ended by 0.88 s
  ASSERT_THAT(second, SizeIs(50));
  EXPECT_EQ(first.back().end, milliseconds(880));
  EXPECT_EQ(second.front().end, milliseconds(900));
  ASSERT_TRUE(batches[2].devices.at(0).exact_time);
  EXPECT_TRUE(batches[2].devices.at(0).exact_time->trusted);
}

TEST(ReplaySource, WithoutResidencySaysNothingOfIt) {
  EXPECT_FALSE(batches_of(steady_power(2)).at(1).devices.at(0).exact_time);
}

TEST(ReplaySource, TheRecordingsWithExactTimesHaveThem) {
  for (const char* name : {"loops_churn", "loops_never_alone", "loops_two_staggered", "real_crowd", "real_llm_resnet",
                           "real_newcomers", "real_replicas", "real_together"}) {
    const auto trace = read_trace(recorded_exact(name));
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    EXPECT_GT(trace->residency.size(), 1000u) << name;
    for (const Trace::Resident& resident : trace->residency) {
      Nanoseconds sum{0};
      for (const Residency& one : resident.bin.residents) sum += one.resident;
      ASSERT_LE(sum, resident.bin.width + std::chrono::microseconds(5)) << name;
    }
  }
}

TEST(ReplaySource, IsTheClockOfTheReplay) {
  ReplaySource source(trace_of(kDeviceLine + steady_power(2)), seconds(1));
  (void)source.sample(false);
  const SampleBatch batch = source.sample(false);
  EXPECT_EQ(batch.at.steady, seconds(1));
  EXPECT_EQ(source.now().steady, seconds(1));
}

TEST(ReplaySource, UtilizationIsTheMeanOverAllOfTheDriversSamples) {
  // Two of the five samples of the second name 7, one names 8, two found nobody.
  const auto batches = batches_of(steady_power(2) + ticket_line(0.15, 7, 90) + ticket_line(0.35, 7, 60) +
                                  ticket_line(0.75, 8, 50) + ticket_line(1.15, 8, 100));
  ASSERT_THAT(batches, SizeIs(3));
  EXPECT_DOUBLE_EQ(find(batches[1], 7)->use.sm.value, 0.3);
  EXPECT_DOUBLE_EQ(find(batches[1], 8)->use.sm.value, 0.1);
  EXPECT_EQ(find(batches[2], 7), nullptr);
  EXPECT_DOUBLE_EQ(find(batches[2], 8)->use.sm.value, 0.2);
}

TEST(ReplaySource, MoreSamplesThanExpectedAllCount) {
  std::string lines = steady_power(1);
  for (int i = 0; i < 6; ++i) lines += ticket_line(0.05 + 0.17 * i, 7, 90);
  lines += ticket_line(0.05, 8, 60);  // a second process in one sample is no further sample
  const auto batches = batches_of(lines);
  ASSERT_THAT(batches, SizeIs(2));
  EXPECT_DOUBLE_EQ(find(batches[1], 7)->use.sm.value, 0.9);
  EXPECT_DOUBLE_EQ(find(batches[1], 8)->use.sm.value, 0.1);
}

TEST(ReplaySource, GarbageIsDropped) {
  const auto batches = batches_of(steady_power(1) + ticket_line(0.1, 7, 1'000'000) + ticket_line(0.3, 0, 50));
  ASSERT_THAT(batches, SizeIs(2));
  EXPECT_THAT(batches[1].devices.at(0).processes, SizeIs(0));
}

TEST(ReplaySource, AListHoldsUntilTheNext) {
  const auto batches = batches_of(steady_power(3) +
                                  "{\"k\":\"procs\",\"t\":0.4,\"p\":[[7,10],[9,1]]}\n"
                                  "{\"k\":\"mps\",\"t\":0.4,\"p\":[[9,20]]}\n"
                                  "{\"k\":\"procs\",\"t\":2.2,\"p\":[[7,30]]}\n");
  ASSERT_THAT(batches, SizeIs(4));
  EXPECT_THAT(batches[0].devices.at(0).processes, SizeIs(0));
  for (size_t i : {1u, 2u}) {
    ASSERT_THAT(batches[i].devices.at(0).processes, SizeIs(2));
    EXPECT_TRUE(find(batches[i], 7)->listed);
    EXPECT_FALSE(find(batches[i], 7)->mps_client);
    EXPECT_TRUE(find(batches[i], 9)->mps_client);
    EXPECT_EQ(find(batches[i], 9)->memory, Bytes{20});
  }
  EXPECT_EQ(find(batches[1], 7)->came, Nanoseconds(400'000'000));
  EXPECT_EQ(find(batches[2], 7)->came, std::nullopt);
  ASSERT_THAT(batches[3].devices.at(0).processes, SizeIs(2)) << "who left is there once more";
  EXPECT_EQ(find(batches[3], 7)->memory, Bytes{30});
  EXPECT_FALSE(find(batches[3], 9)->listed);
  EXPECT_EQ(find(batches[3], 9)->left, Nanoseconds(2'200'000'000));
}

TEST(ReplaySource, WhoLeftIsThereForWhatItDid) {
  const auto batches = batches_of(steady_power(3) +
                                  "{\"k\":\"procs\",\"t\":0,\"p\":[[7,10],[8,10]]}\n"
                                  "{\"k\":\"procs\",\"t\":1.6,\"p\":[]}\n" +
                                  ticket_line(1.3, 7, 100));
  ASSERT_THAT(batches, SizeIs(4));
  ASSERT_NE(find(batches[2], 7), nullptr);
  EXPECT_FALSE(find(batches[2], 7)->listed);
  EXPECT_DOUBLE_EQ(find(batches[2], 7)->use.sm.value, 0.2);
  EXPECT_EQ(find(batches[2], 7)->left, Nanoseconds(1'600'000'000));
  ASSERT_NE(find(batches[2], 8), nullptr);
  EXPECT_FALSE(find(batches[2], 8)->use.any());
  EXPECT_EQ(find(batches[3], 7), nullptr);
  EXPECT_EQ(find(batches[3], 8), nullptr);
}

TEST(ReplaySource, AShortLifeBetweenTwoBatchesIsSeen) {
  const auto batches = batches_of(steady_power(2) +
                                  "{\"k\":\"procs\",\"t\":0.2,\"p\":[]}\n"
                                  "{\"k\":\"procs\",\"t\":1.2,\"p\":[[7,10]]}\n"
                                  "{\"k\":\"procs\",\"t\":1.4,\"p\":[[7,10]]}\n"
                                  "{\"k\":\"procs\",\"t\":1.6,\"p\":[]}\n");
  ASSERT_THAT(batches, SizeIs(3));
  ASSERT_NE(find(batches[2], 7), nullptr);
  EXPECT_FALSE(find(batches[2], 7)->listed);
  EXPECT_EQ(find(batches[2], 7)->came, Nanoseconds(1'200'000'000));
  EXPECT_EQ(find(batches[2], 7)->left, Nanoseconds(1'600'000'000));
}

TEST(ReplaySource, FineReadingsAreThoseSinceTheLastBatch) {
  const auto batches = batches_of(steady_power(2) +
                                  "{\"k\":\"state\",\"t\":0.2,\"sm_mhz\":1500}\n"
                                  "{\"k\":\"gpm\",\"t\":0.5,\"gfx\":10,\"sm\":20}\n"
                                  "{\"k\":\"gpm\",\"t\":1.1,\"gfx\":30,\"sm\":40}\n"
                                  "{\"k\":\"power\",\"t\":1.5,\"mw\":[[0.9,100],[1.2,200]]}\n");
  ASSERT_THAT(batches, SizeIs(3));
  ASSERT_THAT(batches[2].devices.at(0).activity_readings, SizeIs(1));
  EXPECT_EQ(batches[2].devices[0].activity_readings[0].at, Nanoseconds(1'100'000'000));
  EXPECT_EQ(batches[2].devices[0].activity_readings[0].sm_clock_mhz, 1500);
  ASSERT_THAT(batches[2].devices[0].power_readings, SizeIs(1));
  EXPECT_EQ(batches[2].devices[0].power_readings[0].power, Power::milliwatts(200));
}

TEST(ReplaySource, ActivityAndClockAreMeansOfTheStep) {
  const auto batches =
      batches_of(steady_power(2) +
                 "{\"k\":\"state\",\"t\":0.2,\"sm_mhz\":1000,\"temp_c\":30,\"gpu_util\":10}\n"
                 "{\"k\":\"state\",\"t\":1,\"sm_mhz\":2000,\"temp_c\":40,\"gpu_util\":101,\"memory_used\":5}\n"
                 "{\"k\":\"gpm\",\"t\":0.01,\"gfx\":99,\"sm\":99}\n"  // of the time before
                 "{\"k\":\"gpm\",\"t\":0.5,\"gfx\":10,\"sm\":20}\n"
                 "{\"k\":\"gpm\",\"t\":0.9,\"gfx\":30}\n"
                 "{\"k\":\"gpm\",\"t\":1.01,\"gfx\":50,\"sm\":40}\n"  // read late, but of this step
                 "{\"k\":\"gpm\",\"t\":1.5}\n");
  ASSERT_THAT(batches, SizeIs(3));
  const DeviceSample& first = batches[1].devices.at(0);
  EXPECT_EQ(first.sm_clock_mhz, 1500);
  EXPECT_EQ(first.temperature_celsius, 40);
  EXPECT_EQ(first.memory_used, Bytes{5});
  EXPECT_EQ(first.gpu_utilization, std::nullopt);  // more than all is no number
  ASSERT_TRUE(first.activity);
  EXPECT_DOUBLE_EQ(first.activity->graphics->value, 0.3);
  EXPECT_DOUBLE_EQ(first.activity->parts[Activity::kSm]->value, 0.3);
  EXPECT_EQ(first.activity->parts[Activity::kTensor], std::nullopt);
  const DeviceSample& second = batches[2].devices.at(0);
  EXPECT_EQ(second.activity, std::nullopt);
  EXPECT_EQ(second.sm_clock_mhz, std::nullopt);
  EXPECT_EQ(second.temperature_celsius, 40);
}

TEST(ReplayIdentities, HaveTheNewestNameOfTheirTime) {
  const Trace trace = trace_of(
      kDeviceLine + steady_power(4) +
      "{\"k\":\"procs\",\"t\":0.5,\"p\":[[7,10],[8,10]]}\n"
      "{\"k\":\"process\",\"t\":1.5,\"pid\":7,\"name\":\"sh\",\"owner\":{\"kind\":\"host\",\"unit\":\"a.service\"}}\n"
      "{\"k\":\"process\",\"t\":2.5,\"pid\":7,\"name\":\"train\",\"owner\":{\"kind\":\"slurm_job\",\"job\":\"5\"}}\n"
      "{\"k\":\"process\",\"t\":1.5,\"pid\":9,\"name\":\"never seen\",\"owner\":{\"kind\":\"host\"}}\n");
  ReplayIdentities identities(trace);
  ReplaySource source(trace, seconds(1));
  std::vector<IdentityMap> maps;
  while (!source.done()) maps.push_back(*identities.resolve(source.sample(false)));
  ASSERT_THAT(maps, SizeIs(5));
  EXPECT_EQ(maps[1].by_pid.at(7).name, "sh") << "the first name, a little early";
  EXPECT_EQ(maps[2].by_pid.at(7).owner.unit, "a.service");
  EXPECT_EQ(maps[3].by_pid.at(7).name, "train");
  EXPECT_EQ(maps[3].by_pid.at(7).owner.kind, OwnerKind::kSlurmJob);
  EXPECT_EQ(maps[3].by_pid.at(7).owner.job, "5");
  EXPECT_EQ(maps[3].by_pid.at(7).key, maps[1].by_pid.at(7).key);
  EXPECT_EQ(maps[1].by_pid.at(7).key, (ProcKey{7, 51}));
  EXPECT_EQ(maps[3].by_pid.at(8).name, "pid-8");
  EXPECT_EQ(maps[3].by_pid.at(8).owner, Owner{});
  EXPECT_FALSE(maps[3].by_pid.contains(9));
}

TEST(ReplayIdentities, AreAliveWhileListedAndUnknownWhenNeverListed) {
  const Trace trace = trace_of(kDeviceLine + steady_power(4) +
                               "{\"k\":\"procs\",\"t\":0.5,\"p\":[[7,10]]}\n"
                               "{\"k\":\"procs\",\"t\":1.2,\"p\":[[7,10],[8,10]]}\n"
                               "{\"k\":\"procs\",\"t\":2.5,\"p\":[[8,10]]}\n" +
                               ticket_line(0.9, 8, 50) + ticket_line(2.2, 7, 50) + ticket_line(3.5, 9, 50));
  ReplayIdentities identities(trace);
  ReplaySource source(trace, seconds(1));
  std::vector<IdentityMap> maps;
  while (!source.done()) maps.push_back(*identities.resolve(source.sample(false)));
  ASSERT_THAT(maps, SizeIs(5));
  EXPECT_TRUE(maps[0].by_pid.empty());
  // 8 works before a list shows it, but is there already: one process from its first moment.
  const ProcKey seven = maps[1].by_pid.at(7).key, eight = maps[1].by_pid.at(8).key;
  EXPECT_EQ(seven, (ProcKey{7, 51}));
  EXPECT_EQ(eight, (ProcKey{8, 91}));
  EXPECT_EQ(maps[1].by_pid.at(7).name, "pid-7");
  EXPECT_EQ(maps[2].by_pid.at(8).key, eight);
  EXPECT_FALSE(maps[3].by_pid.contains(7)) << "it is gone, and was known";
  EXPECT_EQ(maps[3].by_pid.at(8).key, eight);
  EXPECT_EQ(maps[4].by_pid.at(9).key, (ProcKey{9, 0})) << "came and went between two looks";
}

}  // namespace
}  // namespace gpuledger::replay
