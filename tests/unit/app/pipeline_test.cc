#include "app/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/proc_tree.h"

namespace gpuledger::app {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class ManualClock final : public Clock {
 public:
  Timestamp now() const override { return {steady, 1'700'000'000s + steady}; }
  Nanoseconds steady{0};
};

// Writes down which cycles asked for the process lists.
class RecordingSource final : public GpuSource {
 public:
  explicit RecordingSource(std::vector<bool>& scans) : scans_(scans) {}
  SampleBatch sample(bool scan_processes) override {
    scans_.push_back(scan_processes);
    SampleBatch batch;
    batch.processes_scanned = scan_processes;
    batch.health = {.source = "nvml", .up = true, .reason = {}, .errors = {}};
    return batch;
  }
  void release() override {}
  void resume() override {}

 private:
  std::vector<bool>& scans_;
};

class PipelineTest : public ::testing::Test {
 protected:
  std::unique_ptr<Pipeline> pipeline(PipelineOptions options) {
    auto resolver = std::make_unique<identity::Resolver>(identity::ProcReader(tree_.root()), nullptr);
    return std::make_unique<Pipeline>(std::make_unique<RecordingSource>(scans_), std::move(resolver), BookingRules{},
                                      std::move(options), clock_);
  }

  ::gpuledger::testing::ProcTree tree_;
  ManualClock clock_;
  std::vector<bool> scans_;
};

// No thread wakes to the nanosecond.
TEST_F(PipelineTest, ACycleAHairEarlyDoesNotPutAScanOff) {
  PipelineOptions options;
  options.sample_interval = 30s;
  options.process_scan_interval = 30s;
  const auto every = pipeline(options);
  for (const Nanoseconds at : {0ns, 30'000'100'000ns, 60'000'050'000ns, 90'000'000'000ns}) {
    clock_.steady = at;
    (void)every->run_cycle();
  }
  EXPECT_THAT(scans_, ElementsAre(true, true, true, true));
}

TEST_F(PipelineTest, ScansNoMoreOftenThanAsked) {
  PipelineOptions options;
  options.process_scan_interval = 3s;
  const auto third = pipeline(options);
  for (int second = 0; second < 7; ++second) {
    clock_.steady = std::chrono::seconds(second);
    (void)third->run_cycle();
  }
  EXPECT_THAT(scans_, ElementsAre(true, false, false, true, false, false, true));
}

}  // namespace
}  // namespace gpuledger::app
