// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "expose/collectors/collectors.h"

// Every process that uses or used a GPU.
namespace gpuledger::expose {
namespace {

constexpr Row<ProcessSeries> kOlderProcessRows[] = {
    {"_energy_joules_total", kCounter, "energy_estimated",
     "Energy of the process on the GPU in joules: booked while it was alone (energy_estimated false) and while it "
     "shared the GPU (true). The sum of both is the process's energy.",
     [](const ProcessSeries& series, Samples& samples) { add_energy(series.booked, samples); }},
    {"_energy_standard_error_joules", kGauge, "",
     "One standard error of the estimated part of the process's energy, in joules. Absent while nothing is estimated.",
     [](const ProcessSeries& series) {
       return series.booked.shared > Energy() ? std::optional(std::sqrt(series.variance)) : std::nullopt;
     },
     "energy_standard_error_joules"},
    {"_gpu_seconds_total", kCounter, "",
     "GPU time of the process in seconds. Absent if the GPU reports no utilization per process (MIG).",
     [](const ProcessSeries& series) { return series.booked.gpu_time; }, "gpu_seconds"},
    {"_sm_utilization_ratio", kGauge, "",
     "Share of time in which the process kept the SMs busy, 0 to 1. Absent if the GPU reports no utilization per "
     "process, and once the process has exited.",
     [](const ProcessSeries& series) { return ratio_of(series, series.newest->sm); }, "sm_utilization_ratio"},
    {"_memory_utilization_ratio", kGauge, "",
     "Share of time in which the process kept the GPU's memory interface busy, 0 to 1. Absent if the GPU reports no "
     "utilization per process, and once the process has exited.",
     [](const ProcessSeries& series) { return ratio_of(series, series.newest->memory_utilization); },
     "memory_utilization_ratio"},
    {"_memory_used_bytes", kGauge, "",
     "GPU memory of the process in bytes. Absent if the driver does not report it, and once the process has exited.",
     [](const ProcessSeries& series) { return series.memory; }, "memory_used_bytes"},
    {"_start_time_seconds", kGauge, "",
     "Start time of the process in seconds since 1970. Absent if the process exited before it could be read.",
     [](const ProcessSeries& series) { return series.newest->identity.start_time_seconds; }, "start_time_seconds"},
    {"_active", kGauge, "", "1 while the process runs, 0 once it has exited and until --metric-retention is over.",
     [](const ProcessSeries& series) { return series.newest->active; }, "active"},
    {"_switches_total", kCounter, "",
     "Context switches to the process on the GPU since the program started, while traced. Only with exact time, and "
     "while the GPU answers.",
     [](const ProcessSeries& series) { return series.switches; }},
};

}  // namespace

std::span<const Row<ProcessSeries>> process_rows() {
  return kOlderProcessRows;
}

std::vector<Family> process_families() {
  CatalogBuilder catalog("process");
  catalog.add(process_rows(), kProcessLabels, &View::processes);
  return catalog.take();
}

}  // namespace gpuledger::expose
