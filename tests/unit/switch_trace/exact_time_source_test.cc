// SPDX-License-Identifier: Apache-2.0
// The source with its threads over the simulated driver.
#include "sample/switch_trace/exact_time_source.h"

#include <gmock/gmock.h>

#include <utility>

#include "simulated_driver.h"
#include "support/eventually.h"
#include "support/manual_clock.h"

namespace gpuledger::switch_trace {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Says what the test wants NVML to say.
class FakeNvml final : public GpuSource {
 public:
  explicit FakeNvml(const Clock& clock) : clock_(clock) {
    auto description = std::make_shared<DeviceDescription>();
    description->uuid.text = "GPU-1";
    description->pci_bus_id = kBusAddress;
    device.description = description;
    device.up = true;
  }
  SampleBatch sample(bool scan) override {
    scans += scan;
    SampleBatch batch;
    batch.at = clock_.now();
    batch.processes_scanned = scan;
    batch.devices.push_back(device);
    return batch;
  }
  void release() override { released = true; }
  void resume() override { released = false; }

  const Clock& clock_;
  DeviceSample device;
  int scans = 0;
  bool released = false;
};

class Source : public ::testing::Test {
 protected:
  Source() {
    auto nvml = std::make_unique<FakeNvml>(clock_);
    nvml_ = nvml.get();
    list(7);
    list(8);
    source_ = std::make_unique<ExactTimeSource>(std::move(nvml), driver_, ExactTimeOptions{}, clock_);
  }
  void list(Pid pid) {
    ProcessSample process;
    process.pid = pid;
    process.listed = true;
    nvml_->device.processes.push_back(process);
  }
  // Half a second later: the two have taken turns, the thread has read it.
  DeviceSample sample(bool scan = false, Pid second = 8) {
    for (int i = 0; i < 25; ++i) {
      if (driver_->driver.traced(kMinor)) {
        const Nanoseconds t = clock_.now().steady;
        driver_->put(kTagStart, 7, t);
        driver_->put(kTagEnd, 7, t + milliseconds(2));
        driver_->put(kTagStart, second, t + microseconds_of(2100));
        driver_->put(kTagEnd, second, t + milliseconds(19));
      }
      clock_.advance(milliseconds(20));
    }
    const SampleBatch batch = source_->sample(scan);
    // The thread looks at the same moment; what it reads is in the next sample.
    EXPECT_TRUE(eventually([this] { return source_->at_rest(); }));
    return batch.devices.at(0);
  }
  static Nanoseconds microseconds_of(int64_t count) { return std::chrono::microseconds(count); }
  DeviceSample samples(int count, bool scan = false, Pid second = 8) {
    DeviceSample last;
    for (int i = 0; i < count; ++i) last = sample(scan, second);
    return last;
  }
  // The first sample with it; a machine that is busy may take many.
  template <typename Wanted>
  DeviceSample sample_until(Wanted wanted, bool scan = false, Pid second = 8) {
    DeviceSample last;
    for (int i = 0; i < 200; ++i) {
      last = sample(scan, second);
      if (wanted(last)) return last;
    }
    ADD_FAILURE() << "it never came: " << last.exact_time->reason;
    return last;
  }
  DeviceSample sample_until_trusted() {
    return sample_until(
        [](const DeviceSample& device) { return device.exact_time->trusted && !device.residency.empty(); });
  }
  DeviceSample sample_until_reason(const std::string& words, bool scan = false, Pid second = 8) {
    const auto has_words = [&](const DeviceSample& device) {
      return device.exact_time->reason.find(words) != std::string::npos;
    };
    return sample_until(has_words, scan, second);
  }

  ManualClock clock_;
  std::shared_ptr<SimulatedDriver> driver_ = std::make_shared<SimulatedDriver>(clock_);
  FakeNvml* nvml_ = nullptr;
  std::unique_ptr<ExactTimeSource> source_;
};

TEST_F(Source, IsBelievedAfterItsTest) {
  const DeviceSample first = sample();
  ASSERT_TRUE(first.exact_time);
  EXPECT_FALSE(first.exact_time->trusted);
  EXPECT_THAT(first.residency, IsEmpty());
  const DeviceSample later = sample_until_trusted();
  EXPECT_GT(later.exact_time->switches_by_process.at(8), 10u);
  EXPECT_EQ(later.exact_time->records_lost, 0u);
  EXPECT_GT(later.exact_time->switching, Nanoseconds(0));
}

TEST_F(Source, LetsTheDriverGoWhenAskedTo) {
  (void)sample_until_trusted();
  source_->release();
  EXPECT_TRUE(driver_->nothing_left());
  EXPECT_TRUE(nvml_->released);
  source_->resume();
  (void)sample_until_trusted();
}

TEST_F(Source, LetsALostGpuGo) {
  const uint64_t before = sample_until_trusted().exact_time->switches_by_process.at(8);
  const auto processes = std::exchange(nvml_->device.processes, {});
  nvml_->device.up = false;
  const DeviceSample lost = sample();
  EXPECT_FALSE(lost.exact_time->trusted);
  EXPECT_THAT(lost.residency, IsEmpty());
  EXPECT_TRUE(driver_->nothing_left());
  nvml_->device.up = true;
  nvml_->device.processes = processes;
  EXPECT_GE(sample_until_trusted().exact_time->switches_by_process.at(8), before) << "they were never gone";
}

TEST_F(Source, StaysAwayFromMps) {
  nvml_->device.processes[0].mps_client = true;
  const DeviceSample shared = samples(5);
  EXPECT_THAT(shared.exact_time->reason, HasSubstr("MPS"));
  EXPECT_FALSE(driver_->driver.traced(kMinor));
  nvml_->device.processes[0].mps_client = false;
  EXPECT_THAT(samples(5).exact_time->reason, HasSubstr("MPS")) << "it may be back at once";
  clock_.advance(std::chrono::minutes(2));
  (void)sample_until_trusted();
}

TEST_F(Source, GoesOnWithoutATraceThatIsRefused) {
  driver_->driver.refuse_bind(kMinor, kRmNotSupported, kBindOff);
  const DeviceSample refused = sample_until_reason("MIG");
  EXPECT_FALSE(refused.exact_time->trusted);
  EXPECT_THAT(refused.residency, IsEmpty());
  EXPECT_EQ(refused.processes.size(), 2u);
}

TEST_F(Source, ADisagreementEndsItForGood) {
  (void)sample_until_trusted();
  const DeviceSample off = sample_until_reason("disagrees", true, 99);
  EXPECT_FALSE(off.exact_time->trusted);
  EXPECT_TRUE(driver_->nothing_left());
  EXPECT_FALSE(samples(10).exact_time->trusted);
  source_->resume();
  (void)sample_until_trusted();
}

TEST_F(Source, WhoIsNotListedYetIsLookedUp) {
  (void)sample_until_trusted();
  const int before = nvml_->scans;
  const DeviceSample seen =
      sample_until([](const DeviceSample& device) { return device.processes.size() == 3; }, false, 9);
  EXPECT_EQ(seen.processes[2].pid, 9u);
  EXPECT_FALSE(seen.processes[2].listed);
  (void)sample(false, 9);
  EXPECT_GT(nvml_->scans, before);
}

TEST_F(Source, ACountBeginsAnewWithANewProcessOfTheSamePid) {
  const uint64_t before = sample_until_trusted().exact_time->switches_by_process.at(8);
  nvml_->device.processes.pop_back();
  EXPECT_GE(sample(false, 7).exact_time->switches_by_process[8], before) << "who left stays for a while";
  list(8);
  EXPECT_GE(sample(false, 7).exact_time->switches_by_process[8], before) << "the lists were empty for a moment";
  nvml_->device.processes.pop_back();
  (void)sample(false, 7);
  clock_.advance(std::chrono::minutes(1));
  list(8);
  EXPECT_FALSE(sample(false, 7).exact_time->switches_by_process.contains(8));
}

}  // namespace
}  // namespace gpuledger::switch_trace
