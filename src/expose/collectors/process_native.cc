// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "expose/collectors/collectors.h"

// The most important metrics of the collector process, under names of our own, for users who do not need the older
// names. Off by default, because the numbers are the same.
namespace gpuledger::expose {
namespace {

constexpr std::string_view kShown[] = {"_energy_joules_total", "_energy_standard_error_joules", "_gpu_seconds_total",
                                       "_memory_used_bytes"};

std::vector<Row<ProcessSeries>> pick_rows() {
  std::vector<Row<ProcessSeries>> picked;
  for (const Row<ProcessSeries>& row : process_rows()) {
    for (const std::string_view name : kShown) {
      if (row.name == name) picked.push_back(row);
    }
  }
  return picked;
}

}  // namespace

std::span<const Row<ProcessSeries>> process_native_rows() {
  static const std::vector<Row<ProcessSeries>> rows = pick_rows();
  return rows;
}

std::vector<Family> process_native_families() {
  CatalogBuilder catalog("process-native");
  catalog.add(
      process_native_rows(), kProcessLabels,
      [](const View& view, const auto& visit) {
        for (const ProcessSeries& series : view.processes) visit(series, series.labels);
      },
      "gpu_ledger_process");
  return catalog.take();
}

}  // namespace gpuledger::expose
