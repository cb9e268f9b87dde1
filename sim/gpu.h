// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "accounting.h"
#include "ring.h"
#include "scenario.h"

namespace gpuledger::sim {

// The driver's sample every 200 ms: the whole GPU's utilization, assigned to the one process that it found.
// Utilizations are hundredths of a percent; pid 0: no process.
struct Ticket {
  Millis t = 0;
  unsigned pid = 0, sm = 0, memory = 0;
  unsigned encoder_pid = 0, encoder = 0;
  unsigned decoder_pid = 0, decoder = 0;
};

struct PowerSample {
  Millis t = 0;
  unsigned mw = 0;
};

// A process in one of the driver's lists.
struct Context {
  unsigned pid = 0;
  bool compute = true;
  bool graphics = false;
  bool mps_client = false;
  std::optional<uint64_t> memory;
  std::optional<unsigned> gpu_instance, compute_instance;
  Millis start = 0;
};

// Percent times milliseconds since the start, as of the last refresh: two of these give a mean.
struct ActivitySum {
  Millis t = 0;
  GpmMix sums{};
};

inline constexpr unsigned kWholeGpu = 0xFFFFFFFFu;

// All values of one GPU that the driver reports, at the time it was advanced to.
struct GpuState {
  uint64_t counter_mj = 0;
  unsigned power_mw = 0;  // as nvmlDeviceGetPowerUsage returns it
  unsigned instant_mw = 0;
  unsigned average_mw = 0;
  unsigned gpu_percent = 0, memory_percent = 0, encoder_percent = 0, decoder_percent = 0;
  double temperature = 30;
  unsigned sm_mhz = 0, memory_mhz = 0;
  uint64_t event_reasons = 0;
  uint64_t capped_ns = 0;  // how long the power limit reduced its clocks
  uint64_t memory_used = 0;
  Ring<PowerSample, 119> power;
  Ring<Ticket, 71> tickets;
  std::map<unsigned, ActivitySum> activity;  // by GPU instance, and kWholeGpu
  GpmMix activity_now{};                     // of the whole GPU, between its last two refreshes
  std::vector<Context> contexts;
};

// A context got the engine, or left it.
struct EngineSwitch {
  int64_t nanos = 0;  // since the start
  unsigned pid = 0;
  bool start = false;
};

class Gpu {
 public:
  // A time at which the counter starts again; a driver reload also drops the samples.
  struct Restart {
    Millis at = 0;
    bool reload = false;
  };

  // Events of the GPU other than work.
  struct Fate {
    std::vector<Restart> restarts;
    std::vector<GpuMoment> accounting;
  };

  static Fate fate_of(const Scenario& scenario, unsigned index);

  Gpu(const GpuSpec& spec, Fate fate);
  virtual ~Gpu() = default;
  // Time may go back (a test's clock): the GPU is then computed again from the start, with the same result.
  virtual void advance(Millis now) = 0;
  // The scenario has other processes or events from then on. A past that is another is computed again.
  virtual void change(const Scenario& scenario, unsigned index, Millis from);

  const GpuSpec& spec() const { return spec_; }
  const GpuState& state() const { return state_; }
  AccountingBook& accounting() { return accounting_; }

  // Context switches are recorded only while they are traced.
  void trace_switches(bool on);
  std::vector<EngineSwitch> take_switches() { return std::exchange(switches_, {}); }

 protected:
  // To the time 0.
  virtual void reset() = 0;
  virtual Millis time() const = 0;
  void start_over();
  void add_ticket(const Ticket& ticket);
  void set_activity(Millis t, const GpmMix& sums);
  // raw_mj: energy since the start.
  void set_counter(Millis t, uint64_t raw_mj);

  const GpuSpec spec_;
  GpuState state_;
  bool switches_traced_ = false;
  std::vector<EngineSwitch> switches_;

 private:
  void take_fate(Fate fate);

  Fate fate_;
  size_t next_restart_ = 0;
  size_t next_accounting_ = 0;
  uint64_t counter_base_mj_ = 0;
  uint64_t counter_start_mj_ = 0;
  AccountingBook accounting_;
};

inline double shown_temperature(const Gpu& gpu) {
  return gpu.spec().temperature.value_or(gpu.state().temperature);
}

std::unique_ptr<Gpu> make_gpu(const Scenario& scenario, unsigned index);

}  // namespace gpuledger::sim
