// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "identity/resolver.h"
#include "support/manual_clock.h"
#include "support/proc_tree.h"

namespace gpuledger::app {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

// Writes down which cycles asked for the process lists.
class RecordingSource final : public GpuSource {
 public:
  explicit RecordingSource(std::vector<bool>& scans) : scans_(scans) {}
  SampleBatch sample(bool scan_processes) override {
    scans_.push_back(scan_processes);
    SampleBatch batch;
    batch.processes_scanned = scan_processes && !away;
    batch.health = {.source = "nvml", .up = !away, .reason = {}, .errors = {}};
    return batch;
  }
  void change_interval(Nanoseconds sample_interval) override { interval = sample_interval; }
  void release() override {}
  void resume() override {}

  bool away = false;
  Nanoseconds interval{0};  // as last told

 private:
  std::vector<bool>& scans_;
};

class PipelineTest : public ::testing::Test {
 protected:
  std::unique_ptr<Pipeline> pipeline(PipelineOptions options) {
    auto resolver = std::make_unique<identity::Resolver>(identity::ProcReader(tree_.root()), identity::NodeDirectory{});
    auto source = std::make_unique<RecordingSource>(scans_);
    source_ = source.get();
    return std::make_unique<Pipeline>(std::move(source), std::move(resolver), BookingRules{}, std::move(options),
                                      clock_);
  }

  // One cycle a second. Waits for the textfile, so that a write shows.
  void run_seconds(Pipeline& pipeline, int count) {
    for (int i = 0; i < count; ++i) {
      clock_.advance(1s);
      (void)pipeline.run_cycle();
      ASSERT_TRUE(pipeline.textfile()->wait(1min));
    }
  }

  static uint64_t failed_writes(const Pipeline& pipeline) {
    uint64_t sum = 0;
    for (const auto& [code, count] : pipeline.textfile()->health().errors) sum += count;
    return sum;
  }

  ::gpuledger::testing::ProcTree tree_;
  ManualClock clock_{0s, 1'700'000'000s};
  std::vector<bool> scans_;
  RecordingSource* source_ = nullptr;  // the last pipeline's
};

// No thread wakes to the nanosecond.
TEST_F(PipelineTest, ACycleAHairEarlyDoesNotPutAScanOff) {
  PipelineOptions options;
  options.sample_interval = 30s;
  options.process_scan_interval = 30s;
  const auto every = pipeline(options);
  for (const Nanoseconds at : {0ns, 30'000'100'000ns, 60'000'050'000ns, 90'000'000'000ns}) {
    clock_.set({at, 1'700'000'000s + at});
    (void)every->run_cycle();
  }
  EXPECT_THAT(scans_, ElementsAre(true, true, true, true));
}

TEST_F(PipelineTest, ScansNoMoreOftenThanAsked) {
  PipelineOptions options;
  options.process_scan_interval = 3s;
  const auto third = pipeline(options);
  for (int second = 0; second < 7; ++second) {
    (void)third->run_cycle();
    clock_.advance(1s);
  }
  EXPECT_THAT(scans_, ElementsAre(true, false, false, true, false, false, true));
}

TEST_F(PipelineTest, TheBootTimeIsReadWithEachScan) {
  PipelineOptions options;
  options.process_scan_interval = 2s;
  const auto node = pipeline(options);
  const auto booted_at = [&] {
    clock_.advance(1s);
    return node->run_cycle()->cycle->booted_at;
  };
  EXPECT_FALSE(booted_at()) << "nobody said where";
  node->read_boot_time_in(tree_.root());
  (void)booted_at();
  EXPECT_EQ(booted_at(), 1'700'000'000);
  tree_.write("stat", "btime 1700000007\n");  // the clock was set
  (void)booted_at();
  EXPECT_EQ(booted_at(), 1'700'000'007);
  tree_.write("stat", "cpu 1\n");
  (void)booted_at();
  EXPECT_FALSE(booted_at());
}

TEST_F(PipelineTest, AChangedIntervalReachesTheSource) {
  PipelineOptions options;
  const auto changed = pipeline(options);
  options.sample_interval = 5s;
  changed->change(BookingRules{}, options);
  EXPECT_EQ(source_->interval, 5s);
}

// A scan is due in every cycle then, for none succeeds.
TEST_F(PipelineTest, WithoutADriverTheTextfileIsStillWrittenOncePerScanInterval) {
  PipelineOptions options;
  options.textfile = tree_.root() + "/folder/gpu.prom";
  std::filesystem::create_directory(tree_.root() + "/folder");
  const auto textfile = pipeline(options);
  (void)textfile->run_cycle();
  ASSERT_TRUE(textfile->textfile()->wait(1min));
  ASSERT_TRUE(std::filesystem::exists(options.textfile)) << "the first one is written at once";
  source_->away = true;
  std::filesystem::remove_all(tree_.root() + "/folder");  // so that every write shows as a failure

  run_seconds(*textfile, 9);
  EXPECT_EQ(failed_writes(*textfile), 0);
  run_seconds(*textfile, 1);
  EXPECT_EQ(failed_writes(*textfile), 1);
  run_seconds(*textfile, 9);
  EXPECT_EQ(failed_writes(*textfile), 1);
  const auto snapshot = textfile->run_cycle();
  EXPECT_NE(snapshot->text.get().find("gpu_ledger_source_up{source=\"textfile\"} 0"), std::string::npos)
      << snapshot->text.get();
}

TEST_F(PipelineTest, TheTextfileSaysWhichSourcesWork) {
  PipelineOptions options;
  options.textfile = tree_.root() + "/gpu.prom";
  const auto textfile = pipeline(options);
  (void)textfile->run_cycle();
  ASSERT_TRUE(textfile->textfile()->wait(1min));
  const auto text = read_file(options.textfile, 1 << 20);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_NE(text->find("gpu_ledger_source_up{source=\"nvml\"} 1"), std::string::npos) << *text;
}

}  // namespace
}  // namespace gpuledger::app
