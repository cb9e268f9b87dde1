// SPDX-License-Identifier: Apache-2.0
// The recorder over the simulated driver, through the very dlopen a real one takes, in virtual time.
#include "sample/replay/trace_recorder.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "app/commands/replay.h"
#include "support/manual_clock.h"
#include "trace_text.h"

namespace gpuledger::replay {
namespace {

using ::testing::HasSubstr;

constexpr Timestamp kStart{std::chrono::hours(1), std::chrono::seconds(1'767'225'600)};  // the simulator's 2026

class RecorderTest : public ::testing::Test {
 protected:
  ~RecorderTest() override {
    recorder_.reset();
    if (held_ != nullptr) ::dlclose(held_);
    for (const char* name : {"GPU_LEDGER_SIM_CLOCK", "GPU_LEDGER_SIM_SCENARIO"}) ::unsetenv(name);
    std::filesystem::remove(scenario_);
  }

  Status open(const std::string& scenario_file) {
    ::setenv("GPU_LEDGER_SIM_CLOCK", "virtual", 1);
    ::setenv("GPU_LEDGER_SIM_SCENARIO", scenario_file.c_str(), 1);
    const std::string path = GPU_LEDGER_BINARY_DIR "/sim/libnvidia-ml.so.1";
    held_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (held_ == nullptr) return Error{Code::kNotFound, ::dlerror()};
    set_time_ = reinterpret_cast<void (*)(double)>(::dlsym(held_, "gpu_ledger_sim_set_time"));
    set_time_(0);
    GL_TRY(library, nvml::load_library(path));
    GL_TRY(recorder, TraceRecorder::open(std::move(library), 0, clock_));
    recorder_ = std::move(recorder);
    return ok_status();
  }
  Status open_text(const std::string& text) {
    scenario_ = ::testing::TempDir() + "recorder_test." + std::to_string(::getpid()) + ".yaml";
    std::ofstream(scenario_) << text;
    return open(scenario_);
  }

  // Stops at an error of the GPU, which goes to `failed`.
  std::string record(Nanoseconds length, Status* failed = nullptr) {
    std::string text = recorder_->device_line();
    for (Nanoseconds t{0}; t <= length; t += TraceRecorder::kPeriod) {
      clock_.set({kStart.steady + t, kStart.wall + t});
      set_time_(std::chrono::duration<double>(t).count());
      const Status polled = recorder_->poll(text);
      if (polled.ok()) continue;
      if (failed == nullptr) ADD_FAILURE() << polled.error().message;
      if (failed != nullptr) *failed = polled;
      return text;
    }
    recorder_->finish(text);
    return text;
  }

  ManualClock clock_{kStart.steady, kStart.wall};
  std::unique_ptr<TraceRecorder> recorder_;

 private:
  void* held_ = nullptr;
  void (*set_time_)(double) = nullptr;
  std::string scenario_;
};

std::map<Pid, double> joules_of(const Trace& trace) {
  std::map<Pid, double> joules;
  BookingRules rules;
  rules.attribution = Attribution::kUtilization;
  const auto ledger = app::run_replay(trace, rules);
  EXPECT_TRUE(ledger.ok());
  if (!ledger.ok()) return joules;
  for (const ProcessAccount& process : ledger->processes) {
    joules[process.identity.key.pid] += process.booked.total().joules();
  }
  return joules;
}

// A recording of a simulated GPU that plays a recording.
TEST_F(RecorderTest, ARecordingOfARecordingIsTheSame) {
  const auto original = read_trace(recorded("three_mixed"));
  ASSERT_TRUE(original.ok());
  const Status opened = open(recorded("three_mixed"));
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const Trace again = trace_of(record(original->length));

  EXPECT_EQ(again.name, original->name);
  EXPECT_EQ(again.uuid, original->uuid);
  EXPECT_EQ(again.driver, original->driver);
  EXPECT_EQ(again.limit_milliwatts, original->limit_milliwatts);
  EXPECT_NEAR(static_cast<double>(again.counters.size()), static_cast<double>(original->counters.size()), 2);
  EXPECT_NEAR(static_cast<double>(again.listings.size()), static_cast<double>(original->listings.size()), 2);
  EXPECT_NEAR(static_cast<double>(again.power.size()), static_cast<double>(original->power.size()),
              0.1 * static_cast<double>(original->power.size()));
  // Where the original was read a moment early, the simulated monitors have nothing new yet.
  EXPECT_GT(again.activities.size(), original->activities.size() * 2 / 3);

  // Tickets one by one. The first after an idle time is a mean with it, as it was in the original.
  ASSERT_NEAR(static_cast<double>(again.tickets.size()), static_cast<double>(original->tickets.size()), 3);
  size_t same = 0;
  for (const Trace::Ticket& ticket : again.tickets) {
    for (const Trace::Ticket& old : original->tickets) {
      const bool at_once = std::chrono::abs(ticket.t - old.t) <= std::chrono::milliseconds(2);
      same += at_once && ticket.pid == old.pid && ticket.sm == old.sm;
    }
  }
  EXPECT_GT(same, original->tickets.size() * 95 / 100);

  const auto before = joules_of(*original), after = joules_of(again);
  ASSERT_EQ(before.size(), after.size());
  for (const auto& [pid, joules] : before) EXPECT_NEAR(after.at(pid), joules, 0.05 * joules + 20) << pid;
}

TEST_F(RecorderTest, MpsClientsAreInTheirOwnList) {
  ASSERT_TRUE(open(recorded("mps_mixed")).ok());
  const Trace trace = trace_of(record(std::chrono::seconds(25)));
  ASSERT_FALSE(trace.listings.empty());
  EXPECT_EQ(trace.listings.back().mps.size(), 3u);
  EXPECT_EQ(trace.listings.back().compute.size(), 4u);
}

TEST_F(RecorderTest, AGpuWithoutGpmOrProcessesIsRecordedToo) {
  const Status opened = open_text("gpus: [{model: T4}]\n");
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const Trace trace = trace_of(record(std::chrono::seconds(3)));
  EXPECT_EQ(trace.counters.size(), 31u);
  EXPECT_TRUE(trace.activities.empty());
  EXPECT_TRUE(trace.tickets.empty());
  ASSERT_EQ(trace.listings.size(), 16u);
  EXPECT_TRUE(trace.listings.back().compute.empty());
  EXPECT_TRUE(trace.states.back().celsius.has_value());
  EXPECT_TRUE(joules_of(trace).empty());
}

TEST_F(RecorderTest, AGpuThatGoesAwayEndsTheRecording) {
  const std::string scenario =
      "gpus: [{model: H100}]\n"
      "events: [{at: 10, do: gpu_lost, gpu: 0}]\n";
  const Status opened = open_text(scenario);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  Status failed = ok_status();
  const Trace trace = trace_of(record(std::chrono::seconds(30), &failed));
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr("nvmlDeviceGetTotalEnergyConsumption"));
  EXPECT_NEAR(static_cast<double>(trace.counters.size()), 100, 2);
}

TEST_F(RecorderTest, AGpuWithoutACounterIsRefused) {
  const Status opened = open_text("gpus: [{model: P100}]\n");
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().message, HasSubstr("has no energy counter"));
}

}  // namespace
}  // namespace gpuledger::replay
