// SPDX-License-Identifier: Apache-2.0
#include "trace_gpu.h"

namespace gpuledger::sim {
namespace {

constexpr Millis kTicketPeriod = 200;

// The recorder saw only samples that named somebody, but the driver's means count the others too.
std::vector<Ticket> fill_gaps(const Trace& trace) {
  std::vector<Ticket> tickets;
  Millis last = trace.caught.empty() ? 0 : trace.caught[0].t % kTicketPeriod;
  auto blanks_until = [&](Millis t) {
    while (t - last > kTicketPeriod * 3 / 2) {
      Ticket blank;
      blank.t = last += kTicketPeriod;
      tickets.push_back(blank);
    }
  };
  for (const Trace::Caught& caught : trace.caught) {
    blanks_until(caught.t);
    Ticket ticket;
    ticket.t = last = caught.t;
    ticket.pid = ticket.encoder_pid = ticket.decoder_pid = caught.pid;
    ticket.sm = caught.sm * 100;
    ticket.memory = caught.memory * 100;
    ticket.encoder = caught.encoder * 100;
    ticket.decoder = caught.decoder * 100;
    tickets.push_back(ticket);
  }
  blanks_until(trace.length);
  return tickets;
}

}  // namespace

TraceGpu::TraceGpu(const GpuSpec& spec, Fate fate)
    : Gpu(spec, std::move(fate)), trace_(*spec_.recording), tickets_(fill_gaps(trace_)) {
  reset();
}

void TraceGpu::reset() {
  start_over();
  at_ = Position{};
  lap_start_ = lap_position_ = played_to_ = last_activity_ = 0;
  next_blank_ = tickets_.empty() ? kTicketPeriod : tickets_.back().t + kTicketPeriod;
  counter_offset_mj_ = 0;
  sums_ = GpmMix{};
  set_counter(0, trace_.energy[0].mj);
  state_.power_mw = state_.instant_mw = state_.average_mw = trace_.energy[0].power_mw;
  state_.activity[kWholeGpu] = {};
  if (!trace_.states.empty()) state_.memory_used = trace_.states[0].memory_used;
}

void TraceGpu::advance(Millis now) {
  if (now < played_to_) reset();
  while (spec_.loop && now - lap_start_ >= trace_.length) {
    play_until(trace_.length);
    lap_start_ += trace_.length;
    counter_offset_mj_ += trace_.energy.back().mj - trace_.energy.front().mj;
    at_ = Position{};
    last_activity_ = lap_position_ = 0;
  }
  play_until(now - lap_start_);
  for (; !spec_.loop && next_blank_ <= now; next_blank_ += kTicketPeriod) {
    if (next_blank_ <= trace_.length) continue;
    Ticket blank;
    blank.t = next_blank_;
    add_ticket(blank);
    state_.gpu_percent = state_.memory_percent = 0;
  }
  played_to_ = now;
}

// In small steps, so that what was listed when a sample was taken does not depend on who asks how often.
void TraceGpu::play_until(Millis local) {
  local = std::min(local, trace_.length);
  for (Millis t = lap_position_; t < local; t += kTicketPeriod / 2) play_step(t);
  play_step(local);
  lap_position_ = local;
}

void TraceGpu::play_step(Millis local) {
  for (; at_.energy < trace_.energy.size() && trace_.energy[at_.energy].t <= local; ++at_.energy) {
    const Trace::Energy& energy = trace_.energy[at_.energy];
    set_counter(lap_start_ + energy.t, counter_offset_mj_ + energy.mj);
    state_.power_mw = state_.average_mw = energy.power_mw;
  }
  for (; at_.listing < trace_.listings.size() && trace_.listings[at_.listing].t <= local; ++at_.listing) {
    play_list(trace_.listings[at_.listing]);
  }
  for (; at_.ticket < tickets_.size() && tickets_[at_.ticket].t <= local; ++at_.ticket) {
    Ticket ticket = tickets_[at_.ticket];
    ticket.t += lap_start_;
    add_ticket(ticket);
  }
  for (; at_.state < trace_.states.size() && trace_.states[at_.state].t <= local; ++at_.state) {
    const Trace::State& state = trace_.states[at_.state];
    state_.gpu_percent = state.gpu_util;
    state_.memory_percent = state.memory_util;
    state_.sm_mhz = state.sm_mhz;
    state_.memory_mhz = state.memory_mhz;
    state_.temperature = state.temperature;
    state_.event_reasons = state.event_reasons;
    state_.memory_used = state.memory_used;
  }
  for (; at_.activity < trace_.activities.size() && trace_.activities[at_.activity].t <= local; ++at_.activity) {
    play_activity(trace_.activities[at_.activity]);
  }
  for (; at_.power < trace_.power.size() && trace_.power[at_.power].t <= local; ++at_.power) {
    state_.power.push({lap_start_ + trace_.power[at_.power].t, trace_.power[at_.power].mw});
    state_.instant_mw = trace_.power[at_.power].mw;
  }
}

void TraceGpu::play_list(const Trace::Listing& listing) {
  const std::vector<Context> before = std::move(state_.contexts);
  state_.contexts.clear();
  for (const auto& [pid, bytes] : listing.compute) {
    Context context;
    context.pid = pid;
    context.memory = bytes;
    context.start = lap_start_ + listing.t;
    for (const Context& known : before) {
      if (known.pid == pid) context.start = known.start;
    }
    for (const auto& client : listing.mps) context.mps_client |= client.first == pid;
    state_.contexts.push_back(context);
  }
}

// A line says the mean since the line before.
void TraceGpu::play_activity(const Trace::Activity& activity) {
  for (unsigned i = 0; i < kGpmCount; ++i) {
    sums_[i] += activity.percent[i] * static_cast<double>(activity.t - last_activity_);
  }
  last_activity_ = activity.t;
  set_activity(lap_start_ + activity.t, sums_);
}

}  // namespace gpuledger::sim
