// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "gpu.h"
#include "lives.h"

namespace gpuledger::sim {

// A GPU whose readings are computed from the scenario and the time, in steps of 20 ms. They do not depend on when or
// how often they are read.
class ComputedGpu final : public Gpu {
 public:
  ComputedGpu(const Scenario& scenario, unsigned index, Fate fate);
  void advance(Millis now) override;
  void change(const Scenario& scenario, unsigned index, Millis from) override;

 private:
  static constexpr Millis kStep = 20;
  static constexpr int64_t kStepsPerRefresh = 5;  // counter, GPM
  static constexpr int64_t kStepsPerTicket = 10;

  struct Worker {
    unsigned pid = 0;  // the pid that the driver reports: for an MPS client its server's
    double share = 0, memory = 0, encoder = 0, decoder = 0;
  };
  // Values that are constant until a process starts, ends, begins to work or stops working.
  struct Plan {
    Millis until = 0;
    unsigned mw = 0;
    bool any_context = false;
    bool capped = false;
    double slowdown = 1;
    std::vector<Worker> workers;
    std::vector<unsigned> alive;  // the pids that the driver may report
    double busy = 0, memory = 0, encoder = 0, decoder = 0;
    std::map<unsigned, GpmMix> activity;
  };

  void reset() override;
  Millis time() const override { return steps_ * kStep; }
  void take_processes(const Scenario& scenario, unsigned index);
  void step();
  void make_plan(Millis t);
  void add_workers(Millis t, const std::vector<Life>& lives, double* watts);
  double capacity_of(const Life& life, Millis t) const;
  unsigned named_pid(const Life& life, const std::vector<Life>& lives) const;
  void refresh(Millis t);
  void write_switches(Millis begin);
  void take_turns(int64_t begin, const std::vector<std::pair<unsigned, double>>& sharers);
  void give_engine_to(unsigned pid, int64_t nanos);
  void draw_ticket(Millis t);
  void list_contexts(Millis now);
  double lot(uint64_t stream, int64_t number) const;

  const uint64_t seed_;
  const double noise_;
  std::vector<ProcessSpec> processes_;
  Plan plan_;
  int64_t steps_ = 0;
  uint64_t spent_uj_ = 0;
  double busy_sum_ = 0, memory_sum_ = 0, encoder_sum_ = 0, decoder_sum_ = 0;  // since the last ticket
  unsigned last_worker_ = 0;
  unsigned on_engine_ = 0;  // 0: no process
  std::map<unsigned, GpmMix> activity_sums_;
};

}  // namespace gpuledger::sim
