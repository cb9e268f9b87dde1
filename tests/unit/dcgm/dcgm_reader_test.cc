// SPDX-License-Identifier: Apache-2.0
#include "sample/dcgm/dcgm_reader.h"

#include "engine_fixture.h"

namespace gpuledger::dcgm {
namespace {

using ::testing::HasSubstr;

class DcgmReader : public EngineTest {
 protected:
  static Energy counter(const View& view) { return view.devices.at(0).energy_counter.value_or(Energy()); }
};

constexpr const char* kShortLife = R"(
gpus: [{model: A100-80GB, accounting: true}]
processes:
  - {pid: 4200, gpus: 0, memory: 2GiB, load: fp32, start: 0.8, end: 1.6}
)";

TEST_F(DcgmReader, EverythingOfAGpuWithoutNvml) {
  const auto connection = connect();
  const auto reader = start(*connection, true);
  const View view = look_until(*reader, {}, [](const View& v) { return !v.devices.at(0).processes.empty(); });
  ASSERT_EQ(view.devices.size(), 2u);
  const DeviceSample& device = view.devices[0];
  EXPECT_TRUE(device.up);
  EXPECT_THAT(device.description->model, HasSubstr("A100"));
  EXPECT_THAT(device.description->uuid.text, HasSubstr("GPU-"));
  EXPECT_FALSE(device.description->driver.empty());
  EXPECT_GT(device.description->power_limit.value_or(Power()), Power::watts(100));
  EXPECT_GT(device.power.value_or(Power()), Power::watts(50));
  EXPECT_EQ(device.memory_total.value_or(Bytes()).count >> 30, 80u);
  EXPECT_TRUE(device.temperature_celsius && device.sm_clock_mhz && device.vitals[Vital::kMemoryClock]);
  EXPECT_EQ(device.utilization, UtilizationState::kUnsupported);
  ASSERT_EQ(device.processes.size(), 1u);
  EXPECT_EQ(device.processes[0].pid, 4101u);
  EXPECT_EQ(device.processes[0].memory, Bytes{4ull << 30});
  EXPECT_TRUE(device.processes[0].compute && device.processes[0].listed);
  EXPECT_TRUE(view.devices[1].processes.empty());
  pass(milliseconds(300));
  const auto later = reader->read({});
  ASSERT_TRUE(later.ok());
  EXPECT_GT(counter(*later), counter(view));
}

// The entries of one list lie 1 us apart in the engine's memory, the lists as far as the watch looks.
TEST_F(DcgmReader, EveryProcessOfAListAndNobodyOfTheOneBefore) {
  node(R"(
gpus: [{model: A100-80GB}]
processes:
  - {pid: 4101, gpus: 0, memory: 4GiB, load: gemm}
  - {pid: 4102, gpus: 0, memory: 3GiB, load: gemm}
  - {pid: 4103, gpus: 0, memory: 2GiB, load: gemm, end: 1.5}
)");
  const auto connection = connect();
  const auto reader = start(*connection, true);
  const auto pids = [](const View& view) {
    std::vector<Pid> found;
    for (const ProcessSample& process : view.devices.at(0).processes) found.push_back(process.pid);
    return found;
  };
  const View view = look_until(*reader, {}, [&](const View& v) { return pids(v).size() == 3; });
  EXPECT_EQ(pids(view), (std::vector<Pid>{4101, 4102, 4103}));
  look_until(*reader, {}, [&](const View& v) { return pids(v) == std::vector<Pid>{4101, 4102}; });
}

// The engine looks ten times a second, whoever comes and goes between two looks of ours is in its memory.
TEST_F(DcgmReader, WhenAProcessCameAndLeft) {
  node(R"(
gpus: [{model: A100-80GB}]
processes:
  - {pid: 4101, gpus: 0, memory: 4GiB, load: gemm, end: 2.5}
  - {pid: 4102, gpus: 0, memory: 3GiB, load: gemm, start: 2.7, end: 3.3}
)");
  const auto connection = connect();
  const auto began = clock_.now().steady;
  ReaderOptions options;
  options.whole = true;
  Reader reader(*connection, options, clock_);  // every second
  const auto look = [&] {
    auto view = reader.read({});
    EXPECT_TRUE(view.ok());
    return view->devices.at(0).processes;
  };
  EXPECT_EQ(look_until(reader, {}, [](const View& v) { return v.devices.at(0).processes.size() == 1; })
                .devices.at(0)
                .processes.at(0)
                .came,
            std::nullopt);
  pass(milliseconds(4500));
  const auto seconds = [&](Nanoseconds at) { return std::chrono::duration<double>(at - began).count(); };
  const std::vector<ProcessSample> processes = look();
  ASSERT_EQ(processes.size(), 2u);
  EXPECT_FALSE(processes[0].listed || processes[1].listed);
  EXPECT_FALSE(processes[0].came);
  // As exact as the lists.
  EXPECT_NEAR(seconds(processes[0].left.value()), 2.5, 0.11);
  EXPECT_NEAR(seconds(processes[1].came.value()), 2.7, 0.11);
  EXPECT_NEAR(seconds(processes[1].left.value()), 3.3, 0.11);
  EXPECT_TRUE(look().empty());
}

std::string crowd(int processes) {
  std::string scenario = "gpus: [{model: A100-80GB}]\nprocesses:\n";
  for (int i = 0; i < processes; ++i) {
    scenario += "  - {pid: " + std::to_string(5000 + i) + ", gpus: 0, memory: 64MiB, load: gemm}\n";
  }
  return scenario;
}

// One answer of the engine has 256 values: less than a list of 300 processes.
TEST_F(DcgmReader, ALongListIsReadToItsEnd) {
  node(crowd(300));
  const auto connection = connect();
  const auto reader = start(*connection, true);
  look_until(*reader, {}, [](const View& v) { return v.devices.at(0).processes.size() == 300; });
  const auto later = reader->read({});
  ASSERT_TRUE(later.ok());
  const std::vector<ProcessSample>& processes = later->devices.at(0).processes;
  EXPECT_EQ(std::count_if(processes.begin(), processes.end(), [](auto& process) { return process.listed; }), 300);
}

// And less than the lists of some seconds: whoever came and left early in them is found.
TEST_F(DcgmReader, ListsSinceTheLastLookAreReadToTheirBegin) {
  node(crowd(40) + "  - {pid: 4102, gpus: 0, memory: 3GiB, load: gemm, start: 1.5, end: 2}\n");
  const auto connection = connect();
  const auto reader = start(*connection, true);
  look_until(*reader, {}, [](const View& v) { return v.devices.at(0).processes.size() == 40; });
  pass(milliseconds(4500));  // 1,800 values
  const auto view = reader->read({});
  ASSERT_TRUE(view.ok());
  const std::vector<ProcessSample>& processes = view->devices.at(0).processes;
  ASSERT_EQ(processes.size(), 41u);
  EXPECT_EQ(processes.front().pid, 4102u);
  EXPECT_TRUE(processes.front().came && processes.front().left);
}

// What the engine noted before the clock was set back is of times to come, for an hour.
TEST_F(DcgmReader, AClockThatWasSetBackHidesNobody) {
  node(R"(
gpus: [{model: A100-80GB}]
processes:
  - {pid: 4101, gpus: 0, memory: 4GiB, load: gemm, end: 2.5}
  - {pid: 4102, gpus: 0, memory: 3GiB, load: gemm, start: 3.5}
events: [{at: 4, do: xid, gpu: 0, xid: 79}]
)");
  struct SetBack : Clock {
    explicit SetBack(const Clock& of) : right(of) {}
    Timestamp now() const override {
      Timestamp time = right.now();
      time.wall += step;
      return time;
    }
    const Clock& right;
    Nanoseconds step{0};
  } clock(clock_);
  const auto connection = connect();
  ReaderOptions options;
  options.whole = true;
  options.interval = milliseconds(100);
  Reader reader(*connection, options, clock);
  const auto only = [](Pid pid) {
    return [pid](const View& v) {
      const auto& processes = v.devices.at(0).processes;
      return processes.size() == 1 && processes[0].pid == pid && processes[0].listed;
    };
  };
  look_until(reader, {}, only(4101));
  clock.step = -std::chrono::hours(1);
  set("clock_set_by_s", -3600);
  std::vector<uint64_t> xids;
  std::set<Pid> listed;
  for (int i = 0; i < 60; ++i) {
    const auto view = reader.read({});
    ASSERT_TRUE(view.ok());
    for (const XidSeen& seen : view->xids) xids.push_back(seen.xid);
    listed.clear();
    for (const ProcessSample& process : view->devices.at(0).processes) {
      if (process.listed) listed.insert(process.pid);
    }
    pass(milliseconds(100));
  }
  EXPECT_EQ(listed, std::set<Pid>{4102});
  EXPECT_EQ(xids, std::vector<uint64_t>{79});
}

// The engine tells a 0 where the driver has no such number.
TEST_F(DcgmReader, WhatAGpuDoesNotHaveIsAbsent) {
  node("gpus: [{model: T4}, {model: A100-80GB, mig: [{gi: 1, ci: 0, profile: 3g.40gb}]}]\n");
  const auto connection = connect();
  const auto reader = start(*connection, true);
  const View view = look_until(*reader, {}, [](const View& v) { return v.devices.size() == 2; });
  EXPECT_FALSE(view.devices[0].vitals[Vital::kMemoryTemperature]);
  EXPECT_FALSE(view.devices[0].description->mig_enabled);
  EXPECT_TRUE(view.devices[1].vitals[Vital::kMemoryTemperature]);
  EXPECT_EQ(view.devices[1].description->mig_enabled, true);
}

TEST_F(DcgmReader, BlanksWithSuccessAreAbsent) {
  const auto connection = connect();
  set("blank", 1);
  const auto reader = start(*connection, true);
  const auto view = reader->read({});
  ASSERT_TRUE(view.ok());
  const DeviceSample& device = view->devices.at(0);
  EXPECT_FALSE(device.up);
  EXPECT_FALSE(device.energy_counter || device.power || device.memory_used || device.vitals[Vital::kMemoryClock]);
}

// Pitfall: the failed watch of a profiling field takes back the fields of its group.
TEST_F(DcgmReader, AFailedProfilingWatchStopsNothingElse) {
  const auto connection = connect();
  set("no_profiling", 1);
  const auto reader = start(*connection, true);
  EXPECT_GT(seen("calls:dcgmWatchFields"), 3);  // it was tried
  for (const char* field : {"watched:156", "watched:205", "watched:230", "watched:221"}) EXPECT_GT(seen(field), 0);
  set("old_engine", 1);  // nothing but what is watched can be read now
  const View first = look_until(*reader, {}, [](const View& v) { return counter(v) > Energy(); });
  look_until(*reader, {}, [&](const View& v) { return counter(v) > counter(first); });
  EXPECT_TRUE(first.activity.empty());
}

TEST_F(DcgmReader, FewerMonitorsWhereNotAllCanBeCounted) {
  const auto connection = connect();
  set("few_monitors", 1);
  const auto reader = start(*connection, true);
  const View view = look_until(*reader, {}, [](const View& v) { return v.activity.size() == 2; });
  const Activity& activity = view.activity.at(view.devices.at(0).description->uuid).whole.value();
  EXPECT_TRUE(activity.graphics && activity.parts[Activity::kSm] && activity.parts[Activity::kDram]);
  EXPECT_FALSE(activity.parts[Activity::kFp32]);
}

TEST_F(DcgmReader, MonitorsOnlyOfTheGpusThatLackThem) {
  const auto connection = connect();
  GpuUuid lacking;
  {
    const auto whole = start(*connection, true);
    lacking = whole->read({})->devices.at(0).description->uuid;
  }
  const auto reader = start(*connection, false);
  const View view = look_until(*reader, {lacking}, [](const View& v) { return !v.activity.empty(); });
  EXPECT_EQ(view.activity.size(), 1u);
  EXPECT_TRUE(view.activity.contains(lacking));
  EXPECT_TRUE(view.devices.empty());
  ASSERT_TRUE(reader->read({}).ok());  // nobody wants them any more
  EXPECT_EQ(seen("watched:1001"), 0);
}

TEST_F(DcgmReader, MonitorsOfMigInstances) {
  node(R"(
gpus: [{model: A100-80GB, mig: [{gi: 1, ci: 0, profile: 3g.40gb}, {gi: 2, ci: 0, profile: 3g.40gb}]}]
processes: [{pid: 4101, gpus: 0, mig: {gi: 2, ci: 0}, memory: 4GiB, load: gemm}]
)");
  const auto connection = connect();
  const auto reader = start(*connection, true);
  const View view = look_until(*reader, {}, [](const View& v) {
    return !v.activity.empty() && v.activity.begin()->second.instances.size() == 2;
  });
  const auto& instances = view.activity.begin()->second.instances;
  EXPECT_EQ(instances.at(1).graphics, Ratio{0});
  EXPECT_EQ(instances.at(2).graphics, Ratio{0.75});
  EXPECT_EQ(view.devices.at(0).description->mig_enabled, true);
}

// An engine older than the library does not know the call for latest values.
TEST_F(DcgmReader, AnOlderEngineIsAskedInAnotherWay) {
  const auto connection = connect();
  set("old_engine", 1);
  ReaderOptions options;
  options.whole = true;
  options.interval = milliseconds(100);
  Reader reader(*connection, options, clock_);
  const View view = look_until(reader, {}, [](const View& v) { return !v.devices.empty() && counter(v) > Energy(); });
  EXPECT_EQ(view.devices.size(), 2u);
  // The joules are of when the engine looked.
  EXPECT_LE(view.at.steady, clock_.now().steady);
  EXPECT_LE(seen("calls:dcgmEntitiesGetLatestValues"), 1);
  EXPECT_FALSE(connection->gone());
}

TEST_F(DcgmReader, Version3GivesZerosForNoData) {
  // libdcgm.so.3 has an engine of its own, which this test has not told anything.
  const auto connection = [&] {
    load("libdcgm.so.3");
    return connect();
  }();
  const auto answers = connection->read_latest({{kEntityGpu, 0}}, {1002}, false);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].reading.content->i64, 0);
  EXPECT_FALSE(answers[0].reading.integer());
}

// Pitfall: an engine without a driver starts, has no GPU, and describes GPU 0 as "".
TEST_F(DcgmReader, AnEngineWithoutADriver) {
  const auto connection = connect();
  set("no_nvml", 1);
  ReaderOptions options;
  options.whole = true;
  Reader reader(*connection, options, clock_);
  const auto none = reader.read({});
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, HasSubstr("the engine has no GPU"));
  EXPECT_FALSE(connection->gone());
  set("no_nvml", 0);
  set("empty_strings", 1);
  EXPECT_FALSE(reader.read({}).ok());  // GPUs that have no UUID
  set("empty_strings", 0);
  EXPECT_TRUE(reader.read({}).ok());
}

TEST_F(DcgmReader, OnlyTheGpusAskedFor) {
  const auto connection = connect();
  ReaderOptions options;
  options.whole = true;
  options.gpu_devices = {"1"};
  Reader reader(*connection, options, clock_);
  const auto view = reader.read({});
  ASSERT_TRUE(view.ok());
  ASSERT_EQ(view->devices.size(), 1u);
  EXPECT_EQ(view->devices[0].description->index, 1u);
}

TEST_F(DcgmReader, XidsOnceEach) {
  node(
      "gpus: [{model: H200}]\nprocesses: []\nevents: [{at: 0.5, do: xid, gpu: 0, xid: 31}, {at: 1, do: xid, gpu: 0, "
      "xid: 79}]\n");
  const auto connection = connect();
  const auto reader = start(*connection, true);
  std::vector<uint64_t> xids;
  for (int i = 0; i < 15; ++i) {
    const auto view = reader->read({});
    ASSERT_TRUE(view.ok());
    for (const XidSeen& seen : view->xids) xids.push_back(seen.xid);
    pass(milliseconds(100));
  }
  EXPECT_EQ(xids, (std::vector<uint64_t>{31, 79}));
}

TEST_F(DcgmReader, WhatWasToldBeforeIsNotToldAgain) {
  node("gpus: [{model: H200}]\nprocesses: []\nevents: [{at: 0.5, do: xid, gpu: 0, xid: 31}]\n");
  const auto connection = connect();
  const auto reader = start(*connection, true);
  set("whole_history", 1);
  size_t xids = 0;
  for (int i = 0; i < 20; ++i) {
    pass(milliseconds(100));
    const auto view = reader->read({});
    ASSERT_TRUE(view.ok());
    xids += view->xids.size();
  }
  EXPECT_EQ(xids, 1u);
}

TEST_F(DcgmReader, ATimeThatCannotBeHidesNobody) {
  const auto connection = connect();
  set("no_calendar", 1);
  const auto reader = start(*connection, true);
  look_until(*reader, {}, [](const View& v) { return !v.devices.at(0).processes.empty(); });
}

TEST_F(DcgmReader, OneUuidIsOneGpu) {
  const auto connection = connect();
  set("one_uuid", 1);
  const auto reader = start(*connection, true);
  const View view = look_until(*reader, {}, [](const View& v) { return !v.devices.empty(); });
  EXPECT_EQ(view.devices.size(), 1u);
}

TEST_F(DcgmReader, ALifeBetweenTwoLooks) {
  node(kShortLife);
  const auto connection = connect();
  const auto reader = start(*connection, false);
  const View view = look_until(*reader, {}, [](const View& v) { return !v.lives.empty(); });
  ASSERT_EQ(view.lives.size(), 1u);
  const Life& life = view.lives[0];
  EXPECT_EQ(life.pid, 4200u);
  EXPECT_NEAR(std::chrono::duration<double>(life.ended - life.began).count(), 0.8, 0.01);
  // Of the GPU's own entry; the summary says 1 byte and began in 1970.
  EXPECT_EQ(life.memory, Bytes{2ull << 30});
  // Of its accounting record; the utilization beside it is 6.9e-310, from the engine's stack.
  EXPECT_GT(life.busy_seconds, 0.2);
  EXPECT_LT(life.busy_seconds, 1.1);
  EXPECT_EQ(seen("calls:dcgmGetPidInfo"), 1);  // asked once, and of nobody who lives
  set("repeat_records", 1);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(reader->read({})->lives.empty());
    pass(milliseconds(100));
  }
}

// Pitfall: where the driver has no accounting, the engine says of every pid that it ran on every GPU.
TEST_F(DcgmReader, NoLivesWhereTheDriverHasNoAccounting) {
  node(kShortLife);
  const auto connection = connect();
  set("accounting_unsupported", 1);
  const auto reader = start(*connection, false);
  EXPECT_EQ(seen("pid_watch"), 1);  // the watch succeeds all the same
  PidInfo info{};
  info.version = kPidInfoVersion;
  info.pid = 99999;
  ASSERT_EQ(connection->call("dcgmGetPidInfo", connection->functions().dcgmGetPidInfo, kAllGpus, &info), kOk);
  ASSERT_EQ(info.numGpus, 1);
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(reader->read({})->lives.empty());
    pass(milliseconds(100));
  }
}

TEST_F(DcgmReader, TwoAnswersThatDisagreeAreNoLife) {
  node(kShortLife);
  const auto connection = connect();
  set("wrong_start", 1);
  const auto reader = start(*connection, false);
  for (int i = 0; i < 20 && seen("calls:dcgmGetPidInfo") < 1; ++i) {
    EXPECT_TRUE(reader->read({})->lives.empty());
    pass(milliseconds(100));
  }
  EXPECT_EQ(book_.errors["malformed"], 1u);
}

TEST_F(DcgmReader, AccountingThatNobodyMaySwitchOn) {
  const auto connection = connect();
  set("accounting_refused", 1);
  const auto reader = start(*connection, true);
  const auto view = reader->read({});
  ASSERT_TRUE(view.ok());  // all else goes on
  EXPECT_TRUE(view->devices.at(0).up);
  EXPECT_EQ(book_.errors.at("permission"), 1u);
}

}  // namespace
}  // namespace gpuledger::dcgm
