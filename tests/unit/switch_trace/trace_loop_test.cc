// SPDX-License-Identifier: Apache-2.0
#include "sample/switch_trace/trace_loop.h"

#include <gmock/gmock.h>

#include <cerrno>

#include "simulated_driver.h"
#include "support/manual_clock.h"

namespace gpuledger::switch_trace {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two contexts that take turns.
struct Load {
  Pid first = 7, second = 8;
  Nanoseconds first_slice = microseconds(2200), second_slice = microseconds(440);
  Nanoseconds between = microseconds(80);
};

class Loop : public ::testing::Test {
 protected:
  explicit Loop(const std::string& version = "580.159.04")
      : driver_(std::make_shared<SimulatedDriver>(clock_, version)) {}

  void make(double budget = 1) {
    loop_ = std::make_unique<TraceLoop>(driver_, TraceOptions{kBusAddress, budget}, clock_);
  }
  // Delivers the load's records as the kernel would, `delay` late, and runs the loop when it wants to.
  void run(Nanoseconds length, const Load& load = {}, Nanoseconds delay = milliseconds(33)) {
    const Nanoseconds end = clock_.now().steady + length;
    while (clock_.now().steady < end) {
      if (clock_.now().steady >= due_) {
        due_ = loop_->step();
        report_.add(loop_->take_report());
      }
      clock_.advance(milliseconds(1));
      traced_ += driver_->driver.traced(kMinor) ? milliseconds(1) : milliseconds(0);
      deliver(clock_.now().steady - delay, load);
    }
  }
  // What the trace cost the work in all of the time, in percent, at so many switches a second.
  double cost(double switches_per_second, Nanoseconds length) const {
    return 100 * switches_per_second * 4.6e-6 * std::chrono::duration<double>(traced_) / length;
  }
  void deliver(Nanoseconds until, const Load& load) {
    if (silent_) return;
    if (next_at_ == Nanoseconds(0)) next_at_ = clock_.now().steady;
    while (next_at_ <= until) {
      const Pid pid = turn_ % 4 < 2 ? load.first : load.second;
      const bool start = turn_ % 2 == 0;
      if (driver_->driver.traced(kMinor)) driver_->put(start ? kTagStart : kTagEnd, pid, next_at_);
      next_at_ += !start ? load.between : pid == load.first ? load.first_slice : load.second_slice;
      ++turn_;
    }
  }
  double seconds_of(Pid pid) const {
    Nanoseconds sum{0};
    for (const ResidencyBin& bin : report_.bins) {
      for (const Residency& resident : bin.residents) sum += resident.pid == pid ? resident.resident : Nanoseconds(0);
    }
    return std::chrono::duration<double>(sum).count();
  }
  double seconds_in_bins() const { return 0.02 * static_cast<double>(report_.bins.size()); }

  ManualClock clock_;
  std::shared_ptr<SimulatedDriver> driver_;
  std::unique_ptr<TraceLoop> loop_;
  TraceReport report_;
  Nanoseconds due_{0};
  Nanoseconds next_at_{0};
  Nanoseconds traced_{0};  // how long
  int turn_ = 0;
  bool silent_ = false;
};

TEST_F(Loop, TellsTwoProcessesApart) {
  make();
  run(seconds(60));
  EXPECT_TRUE(report_.tracing) << report_.trouble;
  EXPECT_EQ(report_.lost, 0u);
  EXPECT_GT(report_.records, 80'000u);
  EXPECT_GT(seconds_in_bins(), 59.0);
  const double cycle = 2200 + 440 + 160;
  EXPECT_NEAR(seconds_of(7) / seconds_in_bins(), 2200 / cycle, 0.001);
  EXPECT_NEAR(seconds_of(8) / seconds_in_bins(), 440 / cycle, 0.001);
  EXPECT_NEAR(std::chrono::duration<double>(report_.counts.switching).count() / 60, 160 / cycle, 0.002);
}

TEST_F(Loop, ReadsRarelyAndGivesBackSeldom) {
  make();
  run(seconds(30), {7, 8, milliseconds(2), milliseconds(2), microseconds(100)});
  // Nearly a thousand records a second: a quarter of the ring is full after four seconds.
  EXPECT_LE(driver_->driver.move_gets(), 10u);
  EXPECT_GE(driver_->driver.move_gets(), 5u);
}

TEST_F(Loop, KeepsUpWithFourteenThousandRecordsASecond) {
  make();
  run(seconds(10), {7, 8, microseconds(70), microseconds(62), microseconds(5)});
  EXPECT_GT(report_.records, 130'000u);
  EXPECT_EQ(report_.lost, 0u);
}

TEST_F(Loop, OneProcessAloneMakesNoRecords) {
  make();
  run(milliseconds(300), {});
  silent_ = true;
  run(seconds(10));
  EXPECT_TRUE(report_.tracing);
  EXPECT_GT(seconds_in_bins(), 9.5);
}

TEST_F(Loop, AClockThatDriftsChangesNoTimes) {
  driver_->offset = -milliseconds(3);
  driver_->drift_ppm = 5;
  make();
  run(seconds(120));
  const double cycle = 2200 + 440 + 160;
  EXPECT_NEAR(seconds_of(7) / seconds_in_bins(), 2200 / cycle, 0.001);
  EXPECT_EQ(report_.counts.late, 0u);
  EXPECT_NEAR(std::chrono::duration<double>(report_.bins.back().end - clock_.now().steady).count(), 0, 0.4);
}

TEST_F(Loop, AClockThatIsSetIsFoundOut) {
  make();
  run(seconds(10));
  const size_t before = report_.bins.size();
  driver_->offset = seconds(7);  // the machine slept
  driver_->driver.set_sequence(kMinor, 12);
  next_at_ = Nanoseconds(0);
  run(seconds(40));
  EXPECT_TRUE(report_.tracing) << report_.trouble;
  EXPECT_GT(report_.bins.size(), before + 500);
  const double cycle = 2200 + 440 + 160;
  EXPECT_NEAR(seconds_of(7) / seconds_in_bins(), 2200 / cycle, 0.01);
}

TEST_F(Loop, ATimeThatCannotBeIsNotTakenForTheGpus) {
  for (const uint64_t time : {~uint64_t{0}, static_cast<uint64_t>(INT64_MAX), uint64_t{1} << 63}) {
    report_ = {};
    driver_->wrong_time = time;
    make();
    run(seconds(3));
    EXPECT_FALSE(report_.tracing);
    EXPECT_THAT(report_.trouble, HasSubstr("impossible time"));
    driver_->wrong_time.reset();
    run(seconds(20));
    EXPECT_TRUE(report_.tracing) << report_.trouble;
  }
}

TEST_F(Loop, RecordsMayBeATenthOfASecondLate) {
  make();
  run(seconds(20), {}, milliseconds(110));
  EXPECT_EQ(report_.counts.late, 0u);
  EXPECT_GT(seconds_in_bins(), 19.0);
}

TEST_F(Loop, ATimerThatIsGoneIsReplacedByFlushing) {
  make();
  int flushes = 0;
  driver_->driver.on_flush = [&] {
    ++flushes;
    deliver(clock_.now().steady, {});
  };
  run(seconds(5));
  EXPECT_EQ(flushes, 0);
  silent_ = true;  // until the next flush, or a process ends
  for (int i = 0; i < 3000; ++i) {
    if (clock_.now().steady >= due_) due_ = loop_->step();
    clock_.advance(milliseconds(1));
  }
  silent_ = false;
  deliver(clock_.now().steady, {});
  const int before = flushes;
  run(seconds(2), {}, seconds(100));
  EXPECT_GE(flushes, before + 8);
}

TEST_F(Loop, SuspicionFlushesOnce) {
  make();
  run(seconds(1));
  int flushes = 0;
  driver_->driver.on_flush = [&] { ++flushes; };
  loop_->suspect_silence();
  run(seconds(2));
  EXPECT_EQ(flushes, 1);
}

TEST_F(Loop, AFullRingIsALossAndNothingElse) {
  make();
  run(seconds(2));
  const auto stuck = clock_.now().steady + seconds(30);  // the thread does not get to run
  while (clock_.now().steady < stuck) {
    clock_.advance(milliseconds(1));
    deliver(clock_.now().steady, {});
  }
  run(seconds(5));
  EXPECT_TRUE(report_.tracing) << report_.trouble;
  EXPECT_GT(report_.lost, 10'000u);
  EXPECT_GT(std::chrono::duration<double>(report_.counts.unknown).count(), 15.0);
  Nanoseconds last{0};
  for (const ResidencyBin& bin : report_.bins) {
    EXPECT_GT(bin.end, last);
    last = bin.end;
  }
}

TEST_F(Loop, MovingTheReadPositionMayTakeLong) {
  make();
  driver_->driver.on_move_get = [&] { clock_.advance(milliseconds(50)); };
  run(seconds(30));
  EXPECT_EQ(report_.lost, 0u);
  EXPECT_EQ(report_.counts.late, 0u);
}

TEST_F(Loop, ACallThatIsRefusedStartsItAnew) {
  make();
  run(seconds(1));
  driver_->driver.fail({0, 0, 0x1f});  // the next call: to move the read position
  run(seconds(4));
  EXPECT_TRUE(report_.tracing);
  run(seconds(10));
  EXPECT_TRUE(report_.tracing) << report_.trouble;
  EXPECT_EQ(driver_->driver.open_nodes(), 4u);  // of one session: control, GPU and two mappings
}

TEST_F(Loop, ARingThatMakesNoSenseIsGivenUp) {
  make();
  run(seconds(1));
  driver_->driver.set_put(99'999);
  run(seconds(1));
  EXPECT_FALSE(report_.tracing);
  EXPECT_TRUE(report_.given_up);
  EXPECT_THAT(report_.trouble, HasSubstr("99999"));
  EXPECT_TRUE(driver_->nothing_left());
}

TEST_F(Loop, HiddenProcessesEndIt) {
  make();
  run(seconds(1), {7, kHiddenPid});
  EXPECT_TRUE(report_.given_up);
  EXPECT_THAT(report_.trouble, HasSubstr("SYS_ADMIN"));
  EXPECT_TRUE(driver_->nothing_left());
}

TEST_F(Loop, ADriverThatIsNotKnownIsAskedOnce) {
  driver_ = std::make_shared<SimulatedDriver>(clock_, "999.1");
  make();
  run(seconds(300));
  EXPECT_TRUE(report_.given_up);
  EXPECT_EQ(driver_->driver.calls(), 2u);
}

TEST_F(Loop, ALostGpuIsLetGoAndTriedAgain) {
  for (const uint32_t status : {kRmGpuLost, kRmGpuInReset}) {
    report_ = {};
    make();
    run(seconds(5));
    driver_->driver.set_gpu_status(kMinor, status);
    run(seconds(25));
    EXPECT_FALSE(report_.tracing);
    EXPECT_FALSE(report_.given_up);
    EXPECT_THAT(report_.trouble, HasSubstr("the GPU is"));
    EXPECT_TRUE(driver_->nothing_left());
    driver_->driver.set_gpu_status(kMinor, 0);
    report_.bins.clear();
    run(seconds(90));
    EXPECT_TRUE(report_.tracing) << report_.trouble;
    EXPECT_GT(report_.bins.size(), 1000u);
  }
}

// The usual load has 714 switches a second, which cost 0.33 %; the busy one 2,500, which cost 1.15 %.
constexpr Load kBusy{7, 8, microseconds(400), microseconds(240), microseconds(80)};

TEST_F(Loop, TracesAllOfTheTimeWithinTheBudget) {
  make(0.005);
  run(seconds(60));
  EXPECT_EQ(traced_, seconds(60));
}

TEST_F(Loop, BurstsKeepTheCostWithinTheBudget) {
  make(0.005);
  run(seconds(300), kBusy);
  EXPECT_TRUE(report_.tracing) << "between two bursts too";
  EXPECT_LE(cost(2500, seconds(300)), 0.5);
  EXPECT_GE(cost(2500, seconds(300)), 0.4) << "the budget is used";
  EXPECT_NEAR(seconds_of(7) / seconds_in_bins(), 400.0 / 800, 0.01);
}

TEST_F(Loop, BurstsAreSpreadOverTheMinute) {
  make(0.001);
  int began = 0;
  for (int second = 0; second < 60; ++second) {
    const bool before = driver_->driver.traced(kMinor);
    run(seconds(1), kBusy);
    began += !before && driver_->driver.traced(kMinor);
  }
  EXPECT_GE(began, 2);
  EXPECT_LE(began, 4);
}

TEST_F(Loop, EveryMinuteHasABurstWhateverTheBudget) {
  make(1e-9);
  for (int minute = 0; minute < 5; ++minute) {
    const Nanoseconds before = traced_;
    run(seconds(60), kBusy);
    EXPECT_GE(traced_ - before, seconds(2)) << minute;
    EXPECT_LE(traced_ - before, seconds(5)) << minute;
  }
}

TEST_F(Loop, TracesAllOfTheTimeAgainWhenTheLoadIsOver) {
  make(0.005);
  run(seconds(60), kBusy);
  EXPECT_LT(traced_, seconds(30));
  silent_ = true;
  run(seconds(10));
  traced_ = Nanoseconds(0);
  run(seconds(60));
  EXPECT_EQ(traced_, seconds(60));
}

TEST_F(Loop, LostRecordsHaveACostToo) {
  make(0.005);
  run(seconds(1));
  driver_->driver.skip_sequence(kMinor, 20'000);
  run(seconds(3));
  EXPECT_FALSE(driver_->driver.traced(kMinor));
}

TEST_F(Loop, LeavesNothingBehindWhenItEnds) {
  make();
  run(seconds(1));
  loop_.reset();
  EXPECT_TRUE(driver_->nothing_left());
}

class OldLoop : public Loop {
 protected:
  OldLoop() : Loop("535.288.01") {}
};

TEST_F(OldLoop, WaitsForAKernelThatDeliversOnceASecond) {
  make();
  run(seconds(20), {}, milliseconds(1000));
  EXPECT_EQ(report_.counts.late, 0u);
  EXPECT_GT(seconds_in_bins(), 17.5);
}

}  // namespace
}  // namespace gpuledger::switch_trace
