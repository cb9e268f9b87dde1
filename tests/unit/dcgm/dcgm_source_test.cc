// SPDX-License-Identifier: Apache-2.0
#include "sample/dcgm/dcgm_source.h"

#include "engine_fixture.h"
#include "sample/nvml/nvml_source.h"

namespace gpuledger::dcgm {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class DcgmSourceTest : public EngineTest {
 protected:
  std::unique_ptr<DcgmSource> open(bool with_nvml, unsigned timeout_ms = 300,
                                   std::vector<std::string> gpu_devices = {}) {
    std::unique_ptr<GpuSource> nvml;
    if (with_nvml) {
      nvml::NvmlSourceOptions options;
      options.library = sim_driver();
      options.sample_interval = milliseconds(100);
      nvml = nvml::make_nvml_source(options, clock_);
    }
    DcgmSourceOptions options;
    options.library = sim_library();
    options.where.timeout_ms = timeout_ms;
    options.sample_interval = milliseconds(100);
    options.gpu_devices = std::move(gpu_devices);
    auto source = DcgmSource::open(options, std::move(nvml), clock_);
    EXPECT_TRUE(source.ok());
    return std::move(*source);
  }

  static ReaderOptions whole() {
    ReaderOptions options;
    options.whole = true;
    options.interval = milliseconds(100);
    return options;
  }

  static const SourceHealth& health(const SampleBatch& batch) {
    return batch.more_health.empty() ? batch.health : batch.more_health.front();
  }

  // The engine's thread works beside us, so a batch may have an older view.
  template <typename Condition>
  SampleBatch sample_until(DcgmSource& source, Condition condition, const char* what,
                           Nanoseconds every = milliseconds(100)) {
    SampleBatch batch;
    const bool found = eventually([&] {
      pass(every);
      batch = source.sample(true);
      return condition(batch);
    });
    EXPECT_TRUE(found) << "never seen: " << what << "; " << health(batch).reason;
    return batch;
  }
  // Samples until the engine was read so often since now; tells every batch.
  template <typename See>
  void sample_reads(DcgmSource& source, int reads, See see) {
    const double before = seen("calls:dcgmEntitiesGetLatestValues");
    const auto enough = [&](const SampleBatch& batch) {
      see(batch);
      return seen("calls:dcgmEntitiesGetLatestValues") >= before + 5 * reads;  // at most five in one read
    };
    sample_until(source, enough, "more reads");
  }
  // A thread that was left behind ends before the next test.
  void let_go() {
    set("hang", 0);
    EXPECT_TRUE(eventually([&] { return seen("calls:dcgmDisconnect") == 1; }));
  }
  static bool works(const SampleBatch& batch) { return health(batch).up; }
};

// What NVML cannot say of an A100 comes from the engine; what it says of an H200 is its own.
TEST_F(DcgmSourceTest, AddsTheMonitorsThatNvmlLacks) {
  const auto source = open(true);
  const SampleBatch batch = sample_until(
      *source, [](const SampleBatch& b) { return b.devices.size() == 2 && b.devices[0].activity; }, "activity");
  EXPECT_TRUE(batch.devices[0].activity->traffic.pcie_sent);
  EXPECT_EQ(batch.devices[0].traffic.pcie_sent, batch.devices[0].activity->traffic.pcie_sent);
  EXPECT_EQ(batch.devices[0].traffic.pcie_received, batch.devices[0].activity->traffic.pcie_received);
  EXPECT_EQ(batch.health.source, "nvml");
  EXPECT_TRUE(batch.health.up);
  ASSERT_EQ(batch.more_health.size(), 1u);
  EXPECT_EQ(batch.more_health[0].source, "dcgm");
  EXPECT_GT(seen("watched:1001"), 0);
  EXPECT_EQ(seen("watched:1001"), 1);  // one GPU
  EXPECT_EQ(batch.devices[0].utilization, UtilizationState::kKnown);
  EXPECT_TRUE(batch.call_durations.contains("dcgmEntitiesGetLatestValues"));
  EXPECT_TRUE(batch.call_durations.contains("nvmlDeviceGetTotalEnergyConsumption"));
}

// Every counter has a number of its own, so that no two can be taken for each other.
TEST_F(DcgmSourceTest, OfAGpusHealthBothSayTheSame) {
  std::string scenario = "noise: 0\ngpus: [{model: A100-80GB}, {model: V100}]\nevents:\n";
  for (const int field : {3, 4, 5, 6, 29, 30, 38, 45, 52, 59, 74, 75, 76, 77, 78, 79, 80, 94, 142, 143}) {
    for (const int gpu : {0, 1}) {
      scenario += "  - {at: 0, do: field, gpu: " + std::to_string(gpu) + ", field: " + std::to_string(field) +
                  ", value: " + std::to_string(1000 + field) + "}\n";
    }
  }
  node(scenario + "  - {at: 0, do: field, gpu: 0, field: 144, value: 1}\n");
  const auto both = [](const SampleBatch& batch) { return batch.devices.size() == 2 && batch.devices[0].up; };
  const SampleBatch by_nvml = sample_until(*open(true), both, "the GPUs");
  const SampleBatch by_dcgm = sample_until(*open(false), both, "the GPUs, by DCGM alone");
  for (auto i = static_cast<uint8_t>(Vital::kPowerViolation); i <= static_cast<uint8_t>(Vital::kNvlinkRecoveryErrors);
       ++i) {
    const auto vital = static_cast<Vital>(i);
    for (const size_t gpu : {0, 1}) {
      EXPECT_EQ(by_dcgm.devices[gpu].vitals[vital], by_nvml.devices[gpu].vitals[vital]) << int{i} << " of GPU " << gpu;
    }
    EXPECT_TRUE(by_nvml.devices[0].vitals[vital] || by_nvml.devices[1].vitals[vital]) << int{i} << " was not tried";
  }
}

TEST_F(DcgmSourceTest, AnEngineThatDoesNotLetUsInDoesNotHoldUpASample) {
  set("hang", 1);
  auto source = open(true);
  ASSERT_TRUE(eventually([&] { return seen("calls:dcgmConnect_v2") == 1; }));
  for (int i = 0; i < 5; ++i) {
    const SampleBatch batch = source->sample(true);
    EXPECT_TRUE(batch.health.up);
    EXPECT_TRUE(batch.devices.at(0).energy_counter);
    EXPECT_FALSE(health(batch).up);
    EXPECT_EQ(health(batch).reason, "connecting");
  }
  source.reset();
  EXPECT_EQ(seen("calls:dcgmDisconnect"), 0) << "nobody waited for it";
  let_go();
}

TEST_F(DcgmSourceTest, ReconnectsWhenTheEngineDiedAndCameBack) {
  const auto source = open(false);
  sample_until(*source, works, "the engine");
  set("dead", 1);
  const SampleBatch down = sample_until(
      *source, [](const SampleBatch& b) { return !works(b); }, "the engine's death");
  ASSERT_EQ(down.devices.size(), 2u);  // known, and down
  EXPECT_FALSE(down.devices[0].up || down.devices[0].energy_counter);
  EXPECT_FALSE(down.processes_scanned);
  set("dead", 0);
  const SampleBatch back = sample_until(*source, works, "the engine's return");
  EXPECT_TRUE(back.devices.at(0).up);
  EXPECT_GT(seen("watched:156"), 0);  // asked for anew
  EXPECT_GE(back.health.errors.at("unavailable"), 1u);
}

// It answers all the time, and has no GPU for a while.
TEST_F(DcgmSourceTest, AnEngineThatWasOfNoUseIsUsedAfterSeconds) {
  set("no_nvml", 1);
  const auto engine = *EngineThread::start(load(), {}, whole(), clock_);
  engine->wait_for_first(minutes(1));
  const auto ask = [&] {
    engine->ask({});
    engine->wait(minutes(1));
    return seen("calls:dcgmConnect_v2");
  };
  double tries = 1;
  for (const int after : {1, 2, 4, 4, 4, 4}) {
    EXPECT_FALSE(engine->take().health.up);
    clock_.advance(seconds(after) - milliseconds(1));
    EXPECT_EQ(ask(), tries) << after;
    clock_.advance(milliseconds(1));
    EXPECT_EQ(ask(), ++tries) << after;
  }
  set("no_nvml", 0);
  clock_.advance(seconds(4));
  (void)ask();
  EXPECT_TRUE(engine->take().health.up);
}

TEST_F(DcgmSourceTest, GpusOfEverOtherUuidsAreLeftOut) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "takes minutes there, and the other tests have the same threads";
#endif
  std::string gpus = "{model: H200}";
  for (int i = 1; i < 16; ++i) gpus += ", {model: H200}";
  node("gpus: [" + gpus + "]\n");
  set("new_uuids", 1);
  const auto source = open(false);
  const auto left_out = [](const SampleBatch& batch) { return batch.health.errors.contains("too_many_gpus"); };
  const SampleBatch batch = sample_until(*source, left_out, "one GPU too many", seconds(10));
  EXPECT_EQ(batch.devices.size(), 128u);
  const SampleBatch later = sample_until(*source, left_out, "another", seconds(10));
  EXPECT_EQ(later.devices.size(), 128u);
}

TEST_F(DcgmSourceTest, ASlowEngineGivesOlderViewsAndTakesNobodysTime) {
  const auto source = open(false);
  const SampleBatch before = sample_until(*source, works, "the engine");
  set("hang", 1);
  for (int i = 0; i < 5; ++i) {
    pass(milliseconds(100));
    const SampleBatch batch = source->sample(true);  // comes back, though the engine does not
    ASSERT_TRUE(works(batch));
    EXPECT_LT(batch.at.steady, clock_.now().steady);
    // The counter and its time belong together.
    EXPECT_EQ(batch.at.steady == before.at.steady,
              batch.devices.at(0).energy_counter == before.devices.at(0).energy_counter);
  }
  set("hang", 0);
  sample_until(
      *source,
      [&](const SampleBatch& batch) {
        EXPECT_GE(batch.at.steady, before.at.steady);
        return batch.devices.at(0).energy_counter > before.devices.at(0).energy_counter;
      },
      "a newer view");
}

// A look takes longer than the sampler waits, and the next one is done before the sampler comes back: the processes
// that came and left in the first are in the batch of the second, also if the driver keeps no records of them.
TEST_F(DcgmSourceTest, ALookThatNobodyTookLosesNoProcess) {
  node(R"(
gpus: [{model: A100-80GB}]
processes:
  - {pid: 4101, gpus: 0, memory: 4GiB, load: gemm}
  - {pid: 4102, gpus: 0, memory: 3GiB, load: gemm, start: 1.5, end: 1.9}
  - {pid: 4103, gpus: 0, memory: 3GiB, load: gemm, start: 1.5}
)");
  set("accounting_unsupported", 1);
  const auto engine = *EngineThread::start(load(), {}, whole(), clock_);
  engine->wait_for_first(minutes(1));
  const auto look = [&] {
    pass(milliseconds(100));
    engine->ask({});
    engine->wait(minutes(1));
  };
  const auto processes = [&] {
    const Findings found = engine->take();
    return found.view ? found.view->devices.at(0).processes : std::vector<ProcessSample>();
  };
  look();
  EXPECT_EQ(processes().size(), 1u);
  pass(milliseconds(2400));
  look();
  look();
  const std::vector<ProcessSample> told = processes();
  ASSERT_EQ(told.size(), 3u);
  EXPECT_TRUE(told[1].pid == 4102 && told[1].came && told[1].left);
  EXPECT_TRUE(told[2].pid == 4103 && told[2].came && told[2].listed);
  look();
  EXPECT_EQ(processes().size(), 2u) << "each is told once";
}

TEST_F(DcgmSourceTest, AnEngineThatHangs) {
  auto source = open(true);
  sample_until(*source, works, "the engine");
  set("hang", 1);
  const SampleBatch down = sample_until(
      *source,
      [](const SampleBatch& b) {
        EXPECT_TRUE(b.devices.at(0).energy_counter);  // NVML goes on
        return !works(b);
      },
      "that it hangs");
  EXPECT_EQ(health(down).reason, "does not answer");
  EXPECT_EQ(health(down).errors.at("timeout"), 1u);
  EXPECT_EQ(health(source->sample(true)).errors.at("timeout"), 1u);  // one hang, one error
  source.reset();
  EXPECT_EQ(seen("calls:dcgmDisconnect"), 0) << "nobody waited for it";
  let_go();
}

TEST_F(DcgmSourceTest, WithoutNvmlTheTimeIsThatOfTheReading) {
  const auto source = open(false);
  const auto gpus = source->wait_for_gpus(minutes(1));
  ASSERT_TRUE(gpus.ok());
  EXPECT_EQ(gpus->size(), 2u);
  const SampleBatch first = source->sample(true);
  const SampleBatch second = sample_until(
      *source, [&](const SampleBatch& b) { return b.at.steady >= first.at.steady + milliseconds(300); },
      "a later view");
  EXPECT_EQ(second.health.source, "dcgm");
  EXPECT_TRUE(second.more_health.empty());
  EXPECT_TRUE(second.processes_scanned);
  const double joules = (*second.devices[0].energy_counter - *first.devices[0].energy_counter).joules();
  const double time = std::chrono::duration<double>(second.at.steady - first.at.steady).count();
  EXPECT_GT(joules / time, 50);
  EXPECT_LT(joules / time, 800);
}

TEST_F(DcgmSourceTest, WithoutNvmlGpusThatAreNotThereAreNamed) {
  const auto source = open(false, 300, {"1", "7"});
  const SampleBatch batch = sample_until(
      *source, [](const SampleBatch& b) { return b.devices.size() == 1; }, "a GPU");
  ASSERT_TRUE(batch.missing_gpus);
  EXPECT_EQ(*batch.missing_gpus, std::vector<std::string>{"7"});
}

TEST_F(DcgmSourceTest, NobodyThere) {
  set("dead", 1);
  const auto source = open(false, 1);
  const auto gpus = source->wait_for_gpus(seconds(3));
  ASSERT_FALSE(gpus.ok());
  EXPECT_THAT(gpus.error().message, HasSubstr("127.0.0.1:5555"));
  EXPECT_TRUE(source->sample(true).devices.empty());
}

// The driver keeps the record of a process that no list ever named. Its GPU's energy over its life, a thousand
// megajoules by this engine, is nobody's.
TEST_F(DcgmSourceTest, AShortLifeIsInTheBatchOnce) {
  node(R"(
gpus: [{model: A100-80GB, accounting: true}]
processes:
  - {pid: 4200, gpus: 0, memory: 2GiB, load: fp32, start: 100, end: 100.8}
)");
  set("no_lists", 1);
  const auto source = open(false);
  sample_until(*source, works, "the engine", milliseconds(1));
  pass(seconds(102) - time());  // it came and went
  int times = 0;
  Energy highest;
  sample_reads(*source, 5, [&](const SampleBatch& batch) {
    for (const ProcessSample& process : batch.devices.at(0).processes) {
      if (process.pid != 4200) continue;
      ++times;
      EXPECT_EQ(process.memory, Bytes{2ull << 30});
      EXPECT_FALSE(process.listed);
      EXPECT_GT(process.use.sm.value, 0);
    }
    highest = std::max(highest, batch.devices[0].energy_counter.value_or(Energy()));
  });
  EXPECT_EQ(times, 1);
  EXPECT_LT(highest.joules(), 1e6);
}

// NVML reads the same records once the engine, which is root, has switched accounting on.
TEST_F(DcgmSourceTest, WithNvmlALifeIsNotToldTwice) {
  node(R"(
gpus: [{model: A100-80GB}]
processes:
  - {pid: 4200, gpus: 0, memory: 2GiB, load: fp32, start: 100, end: 100.8}
)");
  const auto source = open(true);
  sample_until(
      *source, [](const SampleBatch& b) { return works(b) && b.devices.at(0).description->accounting_enabled == true; },
      "accounting on", milliseconds(1));
  int told = 0;
  const auto count = [&](const SampleBatch& batch) {
    for (const ProcessSample& process : batch.devices.at(0).processes) told += process.pid == 4200;
  };
  count(source->sample(true));
  pass(seconds(102) - time());  // it came and went
  sample_reads(*source, 5, count);
  EXPECT_EQ(told, 1);
}

TEST_F(DcgmSourceTest, AnotherIntervalIsAnotherWatch) {
  const auto source = open(false);
  sample_until(*source, works, "the engine");
  source->change_interval(milliseconds(100));  // the same
  sample_reads(*source, 2, [](const SampleBatch&) {});
  EXPECT_EQ(seen("calls:dcgmConnect_v2"), 1);
  source->change_interval(milliseconds(200));
  sample_until(
      *source, [&](const SampleBatch& b) { return works(b) && seen("calls:dcgmConnect_v2") == 2; }, "a new connection");
}

TEST_F(DcgmSourceTest, LetsTheEngineGo) {
  const auto source = open(false);
  sample_until(*source, works, "the engine");
  source->release();
  const SampleBatch released = source->sample(true);
  EXPECT_FALSE(released.health.up);
  EXPECT_THAT(released.health.reason, HasSubstr("released"));
  EXPECT_TRUE(eventually([&] { return seen("calls:dcgmDisconnect") == 1; }));
  source->resume();
  sample_until(*source, works, "the engine taken back");
}

}  // namespace
}  // namespace gpuledger::dcgm
