// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "expose/catalog.h"

// One file per collector: a table of rows for each list of the View that it shows.
namespace gpuledger::expose {

std::vector<Family> process_families();
std::vector<Family> process_native_families();
std::vector<Family> process_info_families();
std::vector<Family> idle_families();
std::vector<Family> processlist_families();
std::vector<Family> device_families();
std::vector<Family> device_detail_families();
std::vector<Family> pod_families();
std::vector<Family> driver_call_families();
std::vector<Family> self_families();

// Rows that are also in the JSON, or whose series --max-series counts.
std::span<const Row<ProcessSeries>> process_rows();
std::span<const Row<ProcessSeries>> process_native_rows();
std::span<const Row<ProcessSeries>> process_info_rows();
std::span<const Row<ProcessSeries>> idle_process_rows();
std::span<const Row<ProcessSeries>> processlist_rows();
std::span<const Row<DeviceSeries>> device_rows();
std::span<const Row<DeviceSeries>> health_rows();
std::span<const Row<OwnerSeries>> owner_rows();      // of every kind
std::span<const Row<OwnerSeries>> pod_owner_rows();  // of pods only
std::span<const Row<OwnerSeries>> user_rows();       // of kinds with one user
std::span<const Row<ClosedSeries>> closed_rows();
std::span<const Row<AllocationSeries>> allocation_rows();
std::span<const Row<AllocationSeries>> slurm_allocation_rows();
std::span<const Row<AllocationSeries>> given_rows();  // once for all of a container
std::span<const Row<PodSeries>> pod_rows();
// Also written with another exporter's metrics.
const Row<View>& left_out_row();

// Labels of every series of a process, of each set of names.
inline constexpr std::string_view kProcessLabels =
    "pid gpu process_name pod namespace container pod_uid container_id mig_uuid mig_profile";

// The two series of an energy counter: measured and estimated energy. Both exist from the start, even at 0: increase()
// misses the first value of a series.
inline void add_energy(const Booked& booked, Samples& samples) {
  samples.add(booked.alone, "energy_estimated=\"false\"");
  samples.add(booked.shared, "energy_estimated=\"true\"");
}

}  // namespace gpuledger::expose
