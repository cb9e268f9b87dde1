#include <cmath>
#include <string>

#include "expose/emit.h"

namespace gpuledger::expose {

void add_booked_energy(TextWriter& out, const std::string& labels, const Booked& booked) {
  // Both from the start, though one may stay 0: increase() misses what a series already has when it appears.
  out.add(labels, booked.alone, "energy_estimated=\"false\"");
  out.add(labels, booked.shared, "energy_estimated=\"true\"");
}

void emit_process_energy(const View& view, TextWriter& out) {
  for (const auto& series : view.processes) add_booked_energy(out, series.labels, series.booked);
}

void emit_process_energy_error(const View& view, TextWriter& out) {
  for (const auto& series : view.processes) {
    if (series.booked.shared > Energy()) out.add(series.labels, std::sqrt(series.variance));
  }
}

void emit_process_gpu_seconds(const View& view, TextWriter& out) {
  for (const auto& series : view.processes) {
    if (series.booked.gpu_time) out.add(series.labels, *series.booked.gpu_time);
  }
}

void emit_process_sm(const View& view, TextWriter& out) {
  for (const auto& series : view.processes) {
    if (series.newest->active && series.newest->sm) out.add(series.labels, series.newest->sm->value);
  }
}

void emit_process_memory_utilization(const View& view, TextWriter& out) {
  for (const auto& series : view.processes) {
    const auto& utilization = series.newest->memory_utilization;
    if (series.newest->active && utilization) out.add(series.labels, utilization->value);
  }
}

void emit_process_memory_used(const View& view, TextWriter& out) {
  for (const auto& series : view.processes) {
    if (series.memory) out.add(series.labels, *series.memory);
  }
}

void emit_process_start_time(const View& view, TextWriter& out) {
  for (const auto& series : view.processes) {
    const auto& start = series.newest->identity.start_time_seconds;
    if (start) out.add(series.labels, *start);
  }
}

void emit_process_active(const View& view, TextWriter& out) {
  for (const auto& series : view.processes) out.add(series.labels, uint64_t{series.newest->active});
}

void emit_list_count(const View& view, TextWriter& out) {
  for (const DeviceSeries& device : view.devices) {
    if (device.sample != nullptr) out.add(device.gpu_labels, device.listed);
  }
}

void emit_list_total(const View& view, TextWriter& out) {
  uint64_t total = 0;
  for (const DeviceSeries& device : view.devices) total += device.listed;
  out.add(view.labels().take(), total);
}

namespace {

// Neither word where nobody can tell: MIG before Hopper, a look that is too short.
const char* status_of(const ProcessAccount& process) {
  if (process.idle.evaluated) return process.idle.idle ? "idle" : "active";
  return process.sm && process.sm->value > 0 ? "active" : "unknown";
}

}  // namespace

void emit_list_info(const View& view, TextWriter& out) {
  static const ConstantLabels kNone;
  for (const auto& series : view.listed) {
    LabelText more(kNone);
    more.add("container", series.newest->identity.owner.container);
    more.add("status", status_of(*series.newest));
    if (series.memory) more.add("gpu_memory", std::to_string(series.memory->count >> 20) + "MiB");
    out.add(series.labels, uint64_t{1}, more.take());
  }
}

void emit_list_utilization(const View& view, TextWriter& out) {
  for (const auto& series : view.listed) {
    if (series.newest->sm) out.add(series.labels, percent_of(series.newest->sm->value));
  }
}

void emit_list_memory_utilization(const View& view, TextWriter& out) {
  for (const auto& series : view.listed) {
    // A slice's process can use no more than the slice has.
    const auto& mig = series.newest->mig;
    const auto total =
        mig && mig->memory_total ? mig->memory_total : view.find_device(series.newest->gpu)->sample->memory_total;
    if (!series.memory || !total || total->count == 0) continue;
    out.add(series.labels, percent_of(static_cast<double>(series.memory->count) / static_cast<double>(total->count)));
  }
}

}  // namespace gpuledger::expose
