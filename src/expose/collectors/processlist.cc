// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "expose/collectors/collectors.h"

// The running processes, in the form that is used with node_exporter's textfile collector.
namespace gpuledger::expose {
namespace {

constexpr Row<DeviceSeries> kListGpuRows[] = {
    {"gpu_process_count", kGauge, "", "Processes on the GPU. Absent while the GPU is lost.",
     [](const DeviceSeries& device) { return device.up() ? std::optional(device.listed) : std::nullopt; }},
};

constexpr Row<View> kNodeRows[] = {
    {"gpu_total_processes", kGauge, "", "Processes on all GPUs; one that uses two GPUs counts twice.",
     [](const View& view) {
       uint64_t total = 0;
       for (const DeviceSeries& device : view.devices) total += device.listed;
       return total;
     }},
};

// "unknown" without utilization (MIG before Hopper), and before two idle evaluations.
std::string_view status_of(const ProcessAccount& process) {
  if (process.idle.evaluated) return process.idle.idle ? "idle" : "active";
  return process.idle.works || (process.sm && process.sm->value > 0) ? "active" : "unknown";
}

constexpr Row<ProcessSeries> kListProcessRows[] = {
    {"gpu_process_info", kGauge, "container status gpu_memory",
     "A process on a GPU, always 1. The pid label has GPU and pid (gpu1_12345); status is active, idle or unknown; "
     "gpu_memory is in MiB.",
     [](const ProcessSeries& series, Samples& samples) {
       static const ConstantLabels kNone;
       const ProcessAccount& process = *series.newest;
       LabelText more(kNone);
       more.add("container", process.identity.owner.container);
       more.add("status", status_of(process));
       if (series.memory) more.add("gpu_memory", std::to_string(series.memory->count >> 20) + "MiB");
       samples.add(uint64_t{1}, more.take());
     }},
    {"gpu_process_utilization", kGauge, "",
     "SM utilization of the process in percent, 0 to 100. Absent if the GPU reports no utilization per process.",
     [](const ProcessSeries& series) { return percent_of(series.newest->sm); }},
    {"gpu_process_memory_utilization", kGauge, "",
     "GPU memory of the process in percent of the GPU's memory (on MIG, of the instance's). Absent if the driver does "
     "not report it.",
     [](const ProcessSeries& series) -> std::optional<double> {
       // A process can use only its instance's memory.
       const auto& mig = series.newest->mig;
       const auto total = mig && mig->memory_total ? mig->memory_total : series.device->reading().memory_total;
       if (!series.memory || !total || total->count == 0) return std::nullopt;
       return percent_of(static_cast<double>(series.memory->count) / static_cast<double>(total->count));
     }},
};

}  // namespace

std::span<const Row<ProcessSeries>> processlist_rows() {
  return kListProcessRows;
}

std::vector<Family> processlist_families() {
  CatalogBuilder catalog("processlist");
  catalog.add(rows_of(kListGpuRows), "gpu", &View::devices, &DeviceSeries::gpu_labels);
  catalog.add_of_node(kNodeRows);
  catalog.add(processlist_rows(), "gpu pid command pod namespace gi_id ci_id", &View::listed);
  return catalog.take();
}

}  // namespace gpuledger::expose
