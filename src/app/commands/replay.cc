// SPDX-License-Identifier: Apache-2.0
#include "app/commands/replay.h"

#include <limits>
#include <map>

#include "app/runtime/wiring.h"
#include "base/file.h"
#include "expose/numbers.h"
#include "sample/replay/replay_identities.h"
#include "sample/replay/replay_source.h"

namespace gpuledger::app {
namespace {

// A replay drops no account, so the books must balance over processes too, not only over owners.
Status check_balance(const Ledger& ledger, Nanoseconds at) {
  for (const DeviceAccount& device : ledger.devices) {
    Energy booked;
    for (Energy part : device.unattributed) booked += part;
    for (const ProcessAccount& process : ledger.processes) {
      if (process.gpu == device.description->uuid) booked += process.booked.total();
    }
    if (booked == device.measured) continue;
    return Error{Code::kInternal, "the books do not balance after " + std::to_string(at.count() / 1'000'000) +
                                      " ms: measured " + std::to_string(device.measured.microjoules()) +
                                      " uJ, booked " + std::to_string(booked.microjoules()) + " uJ"};
  }
  return ok_status();
}

struct PidTotal {
  Booked booked;
  Energy static_energy;
  double standard_error_joules = 0;
};

// A pid may have several accounts, e.g. one from before it was listed. Their errors have one cause, so they add up and
// do not cancel.
std::map<Pid, PidTotal> totals_by_pid(const Ledger& ledger) {
  std::map<Pid, PidTotal> totals;
  for (const ProcessAccount& process : ledger.processes) {
    PidTotal& total = totals[process.identity.key.pid];
    total.booked += process.booked;
    total.static_energy += process.static_energy;
    total.standard_error_joules += process.standard_error_joules;
  }
  return totals;
}

template <typename T>
void append_field(std::string& out, const char* name, T value) {
  if (out.back() != '{') out += ',';
  out.append("\"").append(name).append("\":");
  expose::append_number(out, value);
}

void append_charged(std::string& out, Pid pid, const PidTotal& total) {
  append_field(out, "pid", uint64_t{pid});
  append_field(out, "static_joules", total.static_energy);
  append_field(out, "dynamic_joules", total.booked.total() - total.static_energy);
  append_field(out, "standard_error_joules", total.standard_error_joules);
}

}  // namespace

Result<Ledger> run_replay(const replay::Trace& trace, BookingRules rules,
                          const std::function<void(Nanoseconds, const Ledger&)>& after_step,
                          const attribute::Constants& constants) {
  rules.retention = Nanoseconds::max();
  rules.owner_retention = Nanoseconds::max();
  rules.most_exited_processes = rules.most_ended_owners = std::numeric_limits<size_t>::max();
  auto source = std::make_unique<replay::ReplaySource>(trace, rules.sample_interval);
  const replay::ReplaySource& at = *source;
  PipelineOptions options;
  options.process_scan_interval = Nanoseconds(0);
  options.replayed = true;
  Pipeline pipeline(std::move(source), std::make_unique<replay::ReplayIdentities>(trace), rules, options, at,
                    constants);
  std::shared_ptr<const Cycle> cycle;
  while (!at.done()) {
    cycle = pipeline.run_cycle()->cycle;
    const Nanoseconds t = cycle->batch.at.steady;
    GL_TRY_STATUS(check_balance(cycle->ledger, t));
    if (after_step) after_step(t, cycle->ledger);
  }
  return cycle ? cycle->ledger : Ledger();
}

std::string write_replay(const Ledger& ledger) {
  Energy measured, idle, unattributed;
  uint64_t comparisons = 0;
  std::optional<double> error_ratio;  // a recording has one GPU
  for (const DeviceAccount& device : ledger.devices) {
    measured += device.measured;
    comparisons += device.attribution_comparisons;
    error_ratio = device.attribution_error;
    for (size_t i = 0; i < kReasonCount; ++i) {
      (i == static_cast<size_t>(Reason::kIdle) ? idle : unattributed) += device.unattributed[i];
    }
  }
  std::string out = "{\"device\":{";
  append_field(out, "measured_joules", measured);
  append_field(out, "idle_joules", idle);
  append_field(out, "unattributed_joules", unattributed);
  append_field(out, "attribution_comparisons", comparisons);
  if (error_ratio) append_field(out, "attribution_error_ratio", *error_ratio);
  out += "},\n\"processes\":[";
  const char* separator = "\n";
  for (const auto& [pid, total] : totals_by_pid(ledger)) {
    out.append(separator).append("{");
    append_charged(out, pid, total);
    append_field(out, "alone_joules", total.booked.alone);
    append_field(out, "shared_joules", total.booked.shared);
    if (total.booked.gpu_time) append_field(out, "gpu_seconds", *total.booked.gpu_time);
    out += "}";
    separator = ",\n";
  }
  return out + "]}\n";
}

std::string write_replay_step(Nanoseconds t, const Ledger& ledger) {
  std::string out = "{";
  append_field(out, "t", t);
  out += ",\"processes\":[";
  const char* separator = "";
  for (const auto& [pid, total] : totals_by_pid(ledger)) {
    out.append(separator).append("{");
    append_charged(out, pid, total);
    out += "}";
    separator = ",";
  }
  return out + "]}\n";
}

Status replay_command(const Config& config, const ConfigSources& /*sources*/) {
  GL_TRY(trace, replay::read_trace(config.argument));
  if (config.exact_time == ExactTimeMode::kOff) trace.residency.clear();
  std::string series;
  const auto keep_step = [&](Nanoseconds t, const Ledger& ledger) { series += write_replay_step(t, ledger); };
  auto replayed = config.replay_series ? run_replay(trace, booking_rules(config), keep_step)
                                       : run_replay(trace, booking_rules(config));
  GL_TRY(ledger, std::move(replayed).about(config.argument));
  return write_to_stdout(series + write_replay(ledger));
}

}  // namespace gpuledger::app
