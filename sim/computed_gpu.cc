// SPDX-License-Identifier: Apache-2.0
#include "computed_gpu.h"

#include <algorithm>
#include <cmath>

namespace gpuledger::sim {
namespace {

constexpr double kThermalMillis = 30000;
constexpr uint64_t kReasonIdle = 0x1;
constexpr uint64_t kReasonPowerCap = 0x4;
enum Stream : uint64_t { kTicketStream = 1, kEncoderStream, kDecoderStream, kNoiseStream };

unsigned hundredths(double ratio) {
  return static_cast<unsigned>(std::lround(std::clamp(ratio, 0.0, 1.0) * 10000));
}

}  // namespace

ComputedGpu::ComputedGpu(const Scenario& scenario, unsigned index, Fate fate)
    : Gpu(scenario.gpus[index], std::move(fate)), seed_(mix_hash(scenario.seed, index)), noise_(scenario.noise) {
  take_processes(scenario, index);
  reset();
}

void ComputedGpu::take_processes(const Scenario& scenario, unsigned index) {
  processes_.clear();
  for (const ProcessSpec& process : scenario.processes) {
    if (std::find(process.gpus.begin(), process.gpus.end(), index) != process.gpus.end()) processes_.push_back(process);
  }
}

void ComputedGpu::change(const Scenario& scenario, unsigned index, Millis from) {
  take_processes(scenario, index);
  plan_.until = 0;  // the next step makes another
  Gpu::change(scenario, index, from);
}

void ComputedGpu::reset() {
  start_over();
  plan_ = Plan{};
  steps_ = 0;
  spent_uj_ = 0;
  busy_sum_ = memory_sum_ = encoder_sum_ = decoder_sum_ = 0;
  last_worker_ = on_engine_ = 0;
  activity_sums_.clear();
  state_.temperature = 30 + 45 * spec_.model.idle_watts / spec_.model.limit_watts;
  make_plan(0);
  state_.instant_mw = state_.average_mw = state_.power_mw = plan_.mw;
  list_contexts(0);
  refresh(0);
}

void ComputedGpu::advance(Millis now) {
  if (now < steps_ * kStep) reset();
  while ((steps_ + 1) * kStep <= now) step();
  list_contexts(now);
}

double ComputedGpu::lot(uint64_t stream, int64_t number) const {
  return static_cast<double>(mix_hash(seed_, stream, static_cast<uint64_t>(number)) >> 11) / 9007199254740992.0;
}

void ComputedGpu::step() {
  const Millis begin = steps_ * kStep;
  if (begin >= plan_.until) make_plan(begin);
  const double swing = noise_ * (2 * lot(kNoiseStream, steps_) - 1);
  const double limit_mw = spec_.model.limit_watts * 1000;
  const auto mw = static_cast<unsigned>(std::min(limit_mw, std::round(plan_.mw * (1 + swing))));
  ++steps_;
  const Millis end = steps_ * kStep;
  spent_uj_ += static_cast<uint64_t>(mw) * kStep;
  state_.power.push({end, mw});
  state_.instant_mw = mw;
  busy_sum_ += plan_.busy;
  memory_sum_ += plan_.memory;
  encoder_sum_ += plan_.encoder;
  decoder_sum_ += plan_.decoder;
  if (!plan_.workers.empty()) last_worker_ = plan_.workers.back().pid;
  for (const auto& [scope, mix] : plan_.activity) {
    GpmMix& sums = activity_sums_[scope];
    for (unsigned i = 0; i < kGpmCount; ++i) sums[i] += mix[i] * kStep;
  }
  const double target = 30 + 45 * mw / limit_mw;
  state_.temperature += (target - state_.temperature) * kStep / kThermalMillis;
  if (plan_.capped) state_.capped_ns += static_cast<uint64_t>(kStep) * 1'000'000;
  if (switches_traced_) {
    write_switches(begin);
  } else {
    on_engine_ = 0;  // a trace does not show which process was on the engine when it began
  }
  if (steps_ % kStepsPerRefresh == 0) refresh(end);
  if (steps_ % kStepsPerTicket == 0) draw_ticket(end);
}

double ComputedGpu::capacity_of(const Life& life, Millis t) const {
  if (!life.process->gpu_instance) return 1;
  for (const MigSpec& instance : spec_.instances) {
    if (instance.gpu_instance == *life.process->gpu_instance && t >= instance.from && t < instance.until) {
      return std::min(1.0, static_cast<double>(instance.slices) / spec_.model.mig_slices);
    }
  }
  return 0;  // the instance is not there, so nothing runs on it
}

// Under MPS the driver sees one client of the GPU: the server.
unsigned ComputedGpu::named_pid(const Life& life, const std::vector<Life>& lives) const {
  if (life.process->mps != MpsRole::kClient) return life.pid;
  for (const Life& other : lives) {
    if (other.process->mps == MpsRole::kServer && other.process->gpu_instance == life.process->gpu_instance)
      return other.pid;
  }
  return life.pid;
}

void ComputedGpu::add_workers(Millis t, const std::vector<Life>& lives, double* watts) {
  std::map<unsigned, std::vector<const Life*>> by_scope;
  for (const Life& life : lives) {
    const Working working = working_at(life, t, seed_);
    plan_.until = std::min(plan_.until, working.until);
    if (working.on) by_scope[life.process->gpu_instance.value_or(kWholeGpu)].push_back(&life);
  }
  for (const auto& [scope, members] : by_scope) {
    const double capacity = capacity_of(*members[0], t);
    std::vector<Claim> claims;
    for (const Life* life : members) {
      claims.push_back({life->process->load.busy * capacity, life->process->load.weight, 0});
    }
    divide_time(capacity, &claims);
    for (size_t i = 0; i < members.size(); ++i) {
      const Load& load = members[i]->process->load;
      const double share = claims[i].got;
      const double part = claims[i].want > 0 ? share / claims[i].want : 0;
      *watts += share * load.watts;
      Worker worker{named_pid(*members[i], lives), share, share * load.memory, load.encoder * capacity,
                    load.decoder * capacity};
      if (share > 0 || worker.encoder > 0 || worker.decoder > 0) plan_.workers.push_back(worker);
      GpmMix& whole = plan_.activity[kWholeGpu];
      for (unsigned m = 0; m < kGpmCount; ++m) {
        whole[m] += load.gpm[m] * part * capacity;
        if (scope != kWholeGpu) plan_.activity[scope][m] += load.gpm[m] * part;
      }
    }
  }
}

void ComputedGpu::make_plan(Millis t) {
  plan_ = Plan{};
  plan_.until = kForever;
  std::vector<Life> lives;
  for (const ProcessSpec& process : processes_) {
    append_lives(process, t, &lives);
    plan_.until = std::min(plan_.until, next_life_change(process, t));
  }
  for (const MigSpec& instance : spec_.instances) {
    if (instance.from > t) plan_.until = std::min(plan_.until, instance.from);
    if (instance.until > t) plan_.until = std::min(plan_.until, instance.until);
  }
  plan_.any_context = !lives.empty();
  for (const Life& life : lives) plan_.alive.push_back(named_pid(life, lives));
  double watts = spec_.model.idle_watts + (lives.empty() ? 0 : spec_.model.resident_watts);
  add_workers(t, lives, &watts);
  if (watts > spec_.model.limit_watts) {
    plan_.capped = true;
    plan_.slowdown = spec_.model.limit_watts / watts;
    watts = spec_.model.limit_watts;
  }
  plan_.mw = static_cast<unsigned>(std::lround(watts * 1000));
  for (const Worker& worker : plan_.workers) {
    plan_.busy += worker.share;
    plan_.memory += worker.memory;
    plan_.encoder += worker.encoder;
    plan_.decoder += worker.decoder;
  }
}

void ComputedGpu::refresh(Millis t) {
  set_counter(t, spent_uj_ / 1000);
  constexpr size_t kOneSecond = 1000 / kStep;
  const size_t count = std::min(kOneSecond, state_.power.size());
  uint64_t sum = 0;
  for (size_t i = state_.power.size() - count; i < state_.power.size(); ++i) sum += state_.power[i].mw;
  if (count > 0) state_.average_mw = static_cast<unsigned>(sum / count);
  state_.power_mw = spec_.model.averages_power ? state_.average_mw : state_.instant_mw;
  state_.sm_mhz =
      plan_.any_context ? static_cast<unsigned>(spec_.model.sm_mhz * plan_.slowdown) : spec_.model.idle_sm_mhz;
  state_.memory_mhz = spec_.model.memory_mhz;
  state_.event_reasons = plan_.capped ? kReasonPowerCap : plan_.busy > 0 ? 0 : kReasonIdle;
  set_activity(t, activity_sums_[kWholeGpu]);
  for (const MigSpec& instance : spec_.instances) {
    state_.activity[instance.gpu_instance] = {t, activity_sums_[instance.gpu_instance]};
  }
}

void ComputedGpu::draw_ticket(Millis t) {
  Ticket ticket;
  ticket.t = t;
  ticket.sm = hundredths(busy_sum_ / kStepsPerTicket);
  ticket.memory = hundredths(memory_sum_ / kStepsPerTicket);
  ticket.encoder = hundredths(encoder_sum_ / kStepsPerTicket);
  ticket.decoder = hundredths(decoder_sum_ / kStepsPerTicket);
  busy_sum_ = memory_sum_ = encoder_sum_ = decoder_sum_ = 0;
  const int64_t number = steps_ / kStepsPerTicket;
  // The process on the engine at this moment, else the last one that was on it.
  auto catch_one = [&](double Worker::*use, uint64_t stream, unsigned utilization) {
    if (utilization == 0) return 0u;
    double total = 0;
    for (const Worker& worker : plan_.workers) total += worker.*use;
    double at = lot(stream, number) * total;
    for (const Worker& worker : plan_.workers) {
      if (worker.*use > 0 && (at -= worker.*use) < 0) return worker.pid;
    }
    return last_worker_;
  };
  ticket.pid = catch_one(&Worker::share, kTicketStream, ticket.sm);
  ticket.encoder_pid = catch_one(&Worker::encoder, kEncoderStream, ticket.encoder);
  ticket.decoder_pid = catch_one(&Worker::decoder, kDecoderStream, ticket.decoder);
  state_.gpu_percent = (ticket.sm + 50) / 100;
  state_.memory_percent = (ticket.memory + 50) / 100;
  state_.encoder_percent = (ticket.encoder + 50) / 100;
  state_.decoder_percent = (ticket.decoder + 50) / 100;
  if (accounting().on()) list_contexts(t);
  add_ticket(ticket);
}

void ComputedGpu::list_contexts(Millis now) {
  std::vector<Life> lives;
  for (const ProcessSpec& process : processes_) append_lives(process, now, &lives);
  state_.contexts.clear();
  const uint64_t total = spec_.model.memory_mib << 20;
  state_.memory_used = total / 240;  // reserved by the driver: 600 MB on an H200
  for (const Life& life : lives) {
    if (capacity_of(life, now) <= 0) continue;
    const ProcessSpec& process = *life.process;
    state_.contexts.push_back({life.pid, process.compute, process.graphics, process.mps == MpsRole::kClient,
                               process.memory, process.gpu_instance, process.compute_instance, life.start});
    state_.memory_used += process.memory.value_or(0);
  }
  state_.memory_used = std::min(state_.memory_used, total);
}

}  // namespace gpuledger::sim
