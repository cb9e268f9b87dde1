// SPDX-License-Identifier: Apache-2.0
// Clocks that are set, and machines that sleep, under a driver whose own clock does not follow. In virtual time.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "attribute/books/engine.h"
#include "sample/nvml/nvml_source.h"
#include "support/laws.h"
#include "support/manual_clock.h"
#include "unit/http/temporary_directory.h"

namespace gpuledger::app {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr const char* kNode = R"(
noise: 0
gpus: [{model: H200}]
processes:
  - {pid: 4101, gpus: 0, memory: 9GiB, load: {kind: gemm, duty: {period: 10, on: 6}}}
  - {pid: 4102, gpus: 0, memory: 9GiB, load: {kind: decode, duty: {period: 7, on: 4}}}
)";

constexpr Nanoseconds kTenth = std::chrono::milliseconds(100);

void set_wall_clock(ManualClock& clock, Nanoseconds by) {
  clock.set({clock.now().steady, clock.now().wall + by});
}

struct Outcome {
  Ledger ledger;
  double process(Pid pid) const {
    for (const ProcessAccount& account : ledger.processes) {
      if (account.identity.key.pid == pid) return account.booked.total().joules();
    }
    return 0;
  }
  double reason(Reason reason) const { return ledger.devices.at(0).unattributed[static_cast<size_t>(reason)].joules(); }
  double measured() const { return ledger.devices.at(0).measured.joules(); }
};

class ClockSteps : public ::testing::Test {
 protected:
  // Two minutes of a node; `change` is called before every second.
  static Outcome run(const std::function<void(int, ManualClock&)>& change) {
    http::TemporaryDirectory folder;
    ::setenv("GPU_LEDGER_SIM_CLOCK", "virtual", 1);
    ::setenv("GPU_LEDGER_SIM_SCENARIO", folder.write("node.yaml", kNode).c_str(), 1);
    const std::string library = GPU_LEDGER_BINARY_DIR "/sim/libnvidia-ml.so.1";
    void* const held = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(held, nullptr) << ::dlerror();
    const auto set_time = reinterpret_cast<void (*)(double)>(::dlsym(held, "gpu_ledger_sim_set_time"));
    const auto forget = reinterpret_cast<void (*)()>(::dlsym(held, "gpu_ledger_sim_reset"));
    forget();
    Outcome result;
    {
      ManualClock clock(9 * kTenth, seconds(1'767'225'600) + 9 * kTenth);  // where the simulator's virtual time begins
      nvml::NvmlSourceOptions options;
      options.library = library;
      options.least_answer_limit = std::chrono::minutes(1);
      const auto source = nvml::make_nvml_source(options, clock);
      attribute::Engine engine{BookingRules{}};
      testing::NeverFalls counters;
      IdentityMap identities;
      for (const Pid pid : {4101, 4102}) {
        ProcessIdentity& identity = identities.by_pid[pid];
        identity.key = {pid, pid * 10ull};
        identity.name = "p" + std::to_string(pid);
      }
      for (int tenth = 10; tenth <= 1200; ++tenth) {
        set_time(tenth / 10.0);
        clock.advance(kTenth);
        if (tenth % 10 != 0) {
          (void)source->glance();
          continue;
        }
        change(tenth / 10, clock);
        result.ledger = engine.advance(source->sample(tenth % 100 == 0 || tenth == 10), identities);
        testing::expect_balanced(result.ledger);
        counters.check(result.ledger);
      }
    }
    ::dlclose(held);
    for (const char* name : {"GPU_LEDGER_SIM_CLOCK", "GPU_LEDGER_SIM_SCENARIO"}) ::unsetenv(name);
    return result;
  }

  static void expect_same_books(const Outcome& result, double tolerance) {
    const Outcome undisturbed = run([](int, ManualClock&) {});
    EXPECT_NEAR(result.measured(), undisturbed.measured(), 1);
    EXPECT_EQ(result.reason(Reason::kAnomaly), 0);
    EXPECT_EQ(result.reason(Reason::kExporterDown), 0);
    for (const Pid pid : {4101, 4102}) {
      EXPECT_GT(undisturbed.process(pid), 1000);
      EXPECT_NEAR(result.process(pid), undisturbed.process(pid), tolerance * undisturbed.process(pid)) << pid;
    }
  }
};

TEST_F(ClockSteps, TheWallClockIsSetForward) {
  expect_same_books(run([](int second, ManualClock& clock) {
                      if (second == 40) set_wall_clock(clock, hours(1));
                    }),
                    0.05);
}

TEST_F(ClockSteps, TheWallClockIsSetBack) {
  expect_same_books(run([](int second, ManualClock& clock) {
                      if (second == 40) set_wall_clock(clock, -hours(1));
                      if (second == 80) set_wall_clock(clock, -seconds(90));
                    }),
                    0.15);  // the samples of some seconds are missing
}

// Ten minutes of sleep in which the GPU drew nothing. Nobody looked, so the step in which it happened is estimated, and
// those who lived through it pay.
TEST_F(ClockSteps, TheMachineSleeps) {
  const Outcome result = run([](int second, ManualClock& clock) {
    if (second == 60) clock.advance(seconds(600));
  });
  const Outcome undisturbed = run([](int, ManualClock&) {});
  EXPECT_NEAR(result.measured(), undisturbed.measured(), 1);
  EXPECT_EQ(result.reason(Reason::kAnomaly), 0);
  EXPECT_EQ(result.reason(Reason::kExporterDown), 0);
  EXPECT_NEAR(result.process(4101) + result.process(4102), undisturbed.process(4101) + undisturbed.process(4102),
              0.02 * undisturbed.measured());
}

// What it drew while it slept is not more than it can draw: the time counts that has passed.
TEST_F(ClockSteps, SteadyTimeGoesOnWhileTheMachineSleeps) {
  const auto since_boot = [] {
    timespec boot{};
    clock_gettime(CLOCK_BOOTTIME, &boot);
    return seconds(boot.tv_sec) + Nanoseconds(boot.tv_nsec);
  };
  const Nanoseconds before = since_boot();
  const Nanoseconds now = SystemClock().now().steady;
  EXPECT_GE(now, before);
  EXPECT_LE(now, since_boot());
}

}  // namespace
}  // namespace gpuledger::app
