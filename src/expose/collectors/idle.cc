// SPDX-License-Identifier: Apache-2.0
#include "expose/collectors/collectors.h"

// Processes that hold GPU memory without work, and their GPUs.
namespace gpuledger::expose {
namespace {

// An exited process is shown for a while with memory 0 and, if its utilization was known, utilization 0.
std::optional<Bytes> memory_of(const ProcessSeries& series) {
  if (series.newest->active) return series.memory;
  return series.memory_peak ? std::optional(Bytes{}) : std::nullopt;
}

std::optional<double> utilization_of(const ProcessSeries& series) {
  const ProcessAccount& process = *series.newest;
  if (!process.active && process.idle.evaluated) return 0;
  return percent_of(process.idle.evaluated ? std::optional(process.idle.highest_sm) : process.sm);
}

constexpr Row<ProcessSeries> kIdleProcessRows[] = {
    {"gpu_idle_process_compute_utilization_percent", kGauge, "",
     "Highest SM utilization of the process in percent since the last idle evaluation, 0 to 100. Absent if the GPU "
     "reports no utilization per process.",
     [](const ProcessSeries& series) { return utilization_of(series); }},
    {"gpu_idle_process_memory_used_bytes", kGauge, "",
     "GPU memory of the process in bytes. Absent if the driver does not report it.",
     [](const ProcessSeries& series) { return memory_of(series); }},
    {"gpu_idle_process_idle_seconds", kGauge, "",
     "Seconds since the process last worked while it holds GPU memory, 0 while it works. Absent until that is known, "
     "and if the GPU reports no utilization per process.",
     [](const ProcessSeries& series) { return idle_time(series.newest->idle); }},
    {"gpu_idle_process_idle_memory_bytes", kGauge, "",
     "GPU memory in bytes that the process holds while idle, 0 while it works. Absent until it is known whether it is "
     "idle, and if the GPU reports no utilization per process.",
     [](const ProcessSeries& series) -> std::optional<Bytes> {
       const IdleState& state = series.newest->idle;
       if (!state.evaluated || !memory_of(series)) return std::nullopt;
       return state.idle ? *memory_of(series) : Bytes{};
     }},
};

constexpr Row<DeviceSeries> kIdleDeviceRows[] = {
    {"gpu_idle_device_utilization_percent", kGauge, "",
     "Percent of time in which any kernel ran on the GPU, 0 to 100. Absent if the GPU does not report it, for example "
     "with MIG.",
     [](const DeviceSeries& device) { return percent_of(device.reading().gpu_utilization); }},
    {"gpu_idle_device_memory_used_bytes", kGauge, "", "Used GPU memory in bytes. Absent if the GPU does not report it.",
     [](const DeviceSeries& device) { return device.reading().memory_used; }},
    {"gpu_idle_device_memory_total_bytes", kGauge, "",
     "Total GPU memory in bytes. Absent if the GPU does not report it.",
     [](const DeviceSeries& device) { return device.reading().memory_total; }},
    {"gpu_idle_device_power_watts", kGauge, "", "Power draw of the GPU in watts. Absent if the GPU does not report it.",
     [](const DeviceSeries& device) { return device.reading().power; }},
    {"gpu_idle_device_temperature_celsius", kGauge, "",
     "Temperature of the GPU in degrees Celsius. Absent if the GPU does not report it.",
     [](const DeviceSeries& device) { return device.reading().temperature_celsius; }},
};

constexpr Row<DeviceSeries> kIdleGpuRows[] = {
    {"gpu_idle_memory_total_bytes", kGauge, "",
     "GPU memory in bytes that all idle processes of the GPU hold. Absent until it is known for one process whether it "
     "is idle, and if the GPU reports no utilization per process.",
     [](const DeviceSeries& device) { return device.idle_known ? std::optional(device.idle_memory) : std::nullopt; }},
};

}  // namespace

std::span<const Row<ProcessSeries>> idle_process_rows() {
  return kIdleProcessRows;
}

std::vector<Family> idle_families() {
  CatalogBuilder catalog("idle");
  catalog.add(idle_process_rows(), "gpu pid process pod namespace container", &View::holders);
  catalog.add(rows_of(kIdleDeviceRows), "gpu model uuid", &View::devices, &DeviceSeries::idle_labels);
  catalog.add(rows_of(kIdleGpuRows), "gpu", &View::devices, &DeviceSeries::idle_gpu_labels);
  return catalog.take();
}

}  // namespace gpuledger::expose
