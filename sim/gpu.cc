// SPDX-License-Identifier: Apache-2.0
#include "gpu.h"

#include "computed_gpu.h"
#include "trace_gpu.h"

namespace gpuledger::sim {

Gpu::Gpu(const GpuSpec& spec, Fate fate) : spec_(spec) {
  take_fate(std::move(fate));
}

void Gpu::take_fate(Fate fate) {
  fate_ = std::move(fate);
  auto earlier = [](const auto& a, const auto& b) { return a.at < b.at; };
  std::stable_sort(fate_.restarts.begin(), fate_.restarts.end(), earlier);
  std::stable_sort(fate_.accounting.begin(), fate_.accounting.end(), earlier);
}

void Gpu::change(const Scenario& scenario, unsigned index, Millis from) {
  take_fate(fate_of(scenario, index));
  if (from < time()) reset();
}

void Gpu::start_over() {
  state_ = GpuState{};
  next_restart_ = next_accounting_ = 0;
  counter_base_mj_ = 0;
  counter_start_mj_ = spec_.counter_start_mj;
  accounting_ = AccountingBook{};
  accounting_.set(spec_.accounting);
}

void Gpu::set_activity(Millis t, const GpmMix& sums) {
  ActivitySum& last = state_.activity[kWholeGpu];
  for (unsigned i = 0; i < kGpmCount && t > last.t; ++i) {
    state_.activity_now[i] = (sums[i] - last.sums[i]) / static_cast<double>(t - last.t);
  }
  last = {t, sums};
}

void Gpu::trace_switches(bool on) {
  switches_traced_ = on;
  if (!on) switches_.clear();
}

void Gpu::add_ticket(const Ticket& ticket) {
  while (next_accounting_ < fate_.accounting.size() && fate_.accounting[next_accounting_].at <= ticket.t) {
    accounting_.set(fate_.accounting[next_accounting_++].on);
  }
  state_.tickets.push(ticket);
  accounting_.add(ticket, state_.contexts);
}

void Gpu::set_counter(Millis t, uint64_t raw_mj) {
  while (next_restart_ < fate_.restarts.size() && fate_.restarts[next_restart_].at <= t) {
    counter_base_mj_ = raw_mj;
    counter_start_mj_ = 0;
    if (fate_.restarts[next_restart_].reload) {
      state_.tickets.clear();
      state_.power.clear();
      accounting_.set(false);  // accounting mode does not outlive the driver
    }
    ++next_restart_;
  }
  state_.counter_mj = counter_start_mj_ + raw_mj - counter_base_mj_;
}

Gpu::Fate Gpu::fate_of(const Scenario& scenario, unsigned index) {
  Fate fate;
  for (const Reload& reload : scenario.reloads) fate.restarts.push_back({reload.back, true});
  for (const GpuMoment& reset : scenario.counter_resets) {
    if (reset.gpu == index) fate.restarts.push_back({reset.at, false});
  }
  for (const GpuMoment& change : scenario.accounting_changes) {
    if (change.gpu == index) fate.accounting.push_back(change);
  }
  return fate;
}

std::unique_ptr<Gpu> make_gpu(const Scenario& scenario, unsigned index) {
  Gpu::Fate fate = Gpu::fate_of(scenario, index);
  const GpuSpec& spec = scenario.gpus[index];
  if (spec.recording) return std::make_unique<TraceGpu>(spec, std::move(fate));
  return std::make_unique<ComputedGpu>(scenario, index, std::move(fate));
}

}  // namespace gpuledger::sim
