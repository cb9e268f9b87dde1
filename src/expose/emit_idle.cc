#include "expose/emit.h"

namespace gpuledger::expose {
namespace {

// Somebody who left is shown for a while as who he is: one who holds nothing and does nothing.
bool has_left(const ProcessSeries& series) {
  return !series.newest->active && series.newest->idle.evaluated;
}

}  // namespace

void emit_idle_process_utilization(const View& view, TextWriter& out) {
  for (const auto& series : view.holders) {
    const ProcessAccount& process = *series.newest;
    if (has_left(series)) {
      out.add(series.labels, uint64_t{0});
    } else if (process.idle.evaluated) {
      out.add(series.labels, percent_of(process.idle.sm_percent / 100));
    } else if (process.sm) {
      out.add(series.labels, percent_of(process.sm->value));
    }
  }
}

void emit_idle_process_memory_used(const View& view, TextWriter& out) {
  for (const auto& series : view.holders) {
    if (series.memory || has_left(series)) out.add(series.labels, series.memory.value_or(Bytes{}));
  }
}

void emit_idle_process_seconds(const View& view, TextWriter& out) {
  for (const auto& series : view.holders) {
    const IdleState& state = series.newest->idle;
    if (state.evaluated) out.add(series.labels, state.idle ? state.idle_for : Nanoseconds(0));
  }
}

void emit_idle_process_memory(const View& view, TextWriter& out) {
  for (const auto& series : view.holders) {
    const IdleState& state = series.newest->idle;
    if (!state.evaluated || !(series.memory || has_left(series))) continue;
    out.add(series.labels, state.idle ? series.memory.value_or(Bytes{}) : Bytes{});
  }
}

void emit_idle_device_utilization(const View& view, TextWriter& out) {
  for (const auto& device : view.devices) {
    if (device.sample != nullptr && device.sample->gpu_utilization) {
      out.add(device.idle_labels, percent_of(device.sample->gpu_utilization->value));
    }
  }
}

void emit_idle_device_memory_used(const View& view, TextWriter& out) {
  for (const auto& device : view.devices) {
    if (device.sample != nullptr && device.sample->memory_used) {
      out.add(device.idle_labels, *device.sample->memory_used);
    }
  }
}

void emit_idle_device_memory_total(const View& view, TextWriter& out) {
  for (const auto& device : view.devices) {
    if (device.sample != nullptr && device.sample->memory_total) {
      out.add(device.idle_labels, *device.sample->memory_total);
    }
  }
}

void emit_idle_device_power(const View& view, TextWriter& out) {
  for (const auto& device : view.devices) {
    if (device.sample != nullptr && device.sample->power) out.add(device.idle_labels, *device.sample->power);
  }
}

void emit_idle_device_temperature(const View& view, TextWriter& out) {
  for (const auto& device : view.devices) {
    if (device.sample != nullptr && device.sample->temperature_celsius) {
      out.add(device.idle_labels, *device.sample->temperature_celsius);
    }
  }
}

void emit_idle_memory_total(const View& view, TextWriter& out) {
  for (const auto& device : view.devices) {
    if (!device.idle_known) continue;
    const DeviceDescription& description = *device.account->description;
    out.add(view.idle_labels().add("gpu", description.index).take(), device.idle_memory);
  }
}

}  // namespace gpuledger::expose
