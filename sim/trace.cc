// SPDX-License-Identifier: Apache-2.0
#include "trace.h"

#include <cmath>
#include <map>

#include "sample/replay/trace.h"

namespace gpuledger::sim {
namespace {

using Recorded = replay::Trace;

Millis millis(Nanoseconds t) {
  return std::llround(static_cast<double>(t.count()) / 1e6);
}

std::vector<Trace::Holder> holders_of(const std::vector<Recorded::Holder>& recorded) {
  std::vector<Trace::Holder> holders;
  for (const auto& [pid, memory] : recorded) holders.emplace_back(pid, memory.value_or(Bytes{}).count);
  return holders;
}

GpmMix mix_of(const gpuledger::Activity& activity) {
  const auto percent = [](const std::optional<Ratio>& ratio) { return 100 * ratio.value_or(Ratio{}).value; };
  using Part = gpuledger::Activity;
  GpmMix mix{};
  mix[kGfx] = percent(activity.graphics);
  mix[kSm] = percent(activity.parts[Part::kSm]);
  mix[kOccupancy] = percent(activity.parts[Part::kOccupancy]);
  mix[kTensor] = percent(activity.parts[Part::kTensor]);
  mix[kDram] = percent(activity.parts[Part::kDram]);
  mix[kFp32] = percent(activity.parts[Part::kFp32]);
  mix[kFp64] = percent(activity.parts[Part::kFp64]);
  return mix;
}

Trace::State state_of(const Recorded::State& s) {
  return {millis(s.t),
          s.gpu_percent.value_or(0),
          s.memory_percent.value_or(0),
          s.sm_mhz.value_or(0),
          s.memory_mhz.value_or(0),
          s.celsius.value_or(0),
          s.event_reasons.value_or(0),
          s.memory_used.value_or(0)};
}

}  // namespace

Result<Trace> read_trace(const std::string& path) {
  GL_TRY(recorded, replay::read_trace(path));
  Trace trace;
  trace.name = recorded.name;
  trace.uuid = recorded.uuid;
  trace.driver = recorded.driver;
  trace.memory_total = recorded.memory_total.value_or(0);
  trace.limit_mw = recorded.limit_milliwatts.value_or(0);
  trace.length = millis(recorded.length);
  for (const auto& c : recorded.counters)
    trace.energy.push_back({millis(c.t), c.millijoules, c.milliwatts.value_or(0)});
  for (const auto& t : recorded.tickets) {
    trace.caught.push_back({millis(t.t), t.pid, t.sm, t.memory, t.encoder, t.decoder});
  }
  for (const auto& l : recorded.listings) {
    trace.listings.push_back({millis(l.t), holders_of(l.compute), holders_of(l.mps)});
  }
  for (const auto& s : recorded.states) trace.states.push_back(state_of(s));
  for (const auto& a : recorded.activities) trace.activities.push_back({millis(a.t), mix_of(a.activity)});
  for (const auto& p : recorded.power) trace.power.push_back({millis(p.t), p.milliwatts});
  return trace;
}

std::vector<ProcessSpec> trace_processes(const Trace& trace, unsigned gpu, bool loop) {
  std::map<unsigned, ProcessSpec> by_pid;
  for (const Trace::Listing& listing : trace.listings) {
    for (const auto& [pid, bytes] : listing.compute) {
      ProcessSpec& process = by_pid[pid];
      if (process.pid == 0) {
        process.pid = pid;
        process.start = listing.t;
        process.name = "recorded-" + std::to_string(pid);
        process.command = process.name;
        process.gpus = {gpu};
      }
      process.end = listing.t + 200;  // the lists were read every 200 ms
      process.memory = bytes;
    }
  }
  std::vector<ProcessSpec> processes;
  for (auto& [pid, process] : by_pid) {
    if (!loop && process.end > trace.length) process.end = kForever;  // the last state is held
    if (loop) {
      process.every = trace.length;
      process.lives = process.end - process.start;
      process.pid_step = 0;
      process.end = kForever;
    }
    processes.push_back(std::move(process));
  }
  return processes;
}

}  // namespace gpuledger::sim
