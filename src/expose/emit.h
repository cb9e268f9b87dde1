#pragma once

#include "expose/text_writer.h"
#include "expose/view.h"

// One function per family; the catalog says which belongs to which. Each adds the family's samples and
// nothing else, and adds none for what is not known.
namespace gpuledger::expose {

void emit_process_energy(const View& view, TextWriter& out);
void emit_process_energy_error(const View& view, TextWriter& out);
void emit_process_gpu_seconds(const View& view, TextWriter& out);
void emit_process_sm(const View& view, TextWriter& out);
void emit_process_memory_utilization(const View& view, TextWriter& out);
void emit_process_memory_used(const View& view, TextWriter& out);
void emit_process_start_time(const View& view, TextWriter& out);
void emit_process_active(const View& view, TextWriter& out);
void emit_process_switches(const View& view, TextWriter& out);

void emit_idle_process_utilization(const View& view, TextWriter& out);
void emit_idle_process_memory_used(const View& view, TextWriter& out);
void emit_idle_process_seconds(const View& view, TextWriter& out);
void emit_idle_process_memory(const View& view, TextWriter& out);
void emit_idle_device_utilization(const View& view, TextWriter& out);
void emit_idle_device_memory_used(const View& view, TextWriter& out);
void emit_idle_device_memory_total(const View& view, TextWriter& out);
void emit_idle_device_power(const View& view, TextWriter& out);
void emit_idle_device_temperature(const View& view, TextWriter& out);
void emit_idle_memory_total(const View& view, TextWriter& out);

void emit_list_count(const View& view, TextWriter& out);
void emit_list_total(const View& view, TextWriter& out);
void emit_list_info(const View& view, TextWriter& out);
void emit_list_utilization(const View& view, TextWriter& out);
void emit_list_memory_utilization(const View& view, TextWriter& out);

void emit_device_info(const View& view, TextWriter& out);
void emit_device_up(const View& view, TextWriter& out);
void emit_device_energy(const View& view, TextWriter& out);
void emit_device_unattributed(const View& view, TextWriter& out);
void emit_device_power(const View& view, TextWriter& out);
void emit_device_idle_power(const View& view, TextWriter& out);
void emit_device_xids(const View& view, TextWriter& out);
void emit_xid_seen(const View& view, TextWriter& out);
void emit_temperature(const View& view, TextWriter& out);
void emit_clock(const View& view, TextWriter& out);
void emit_fan(const View& view, TextWriter& out);
void emit_throttle_active(const View& view, TextWriter& out);
void emit_throttle_seconds(const View& view, TextWriter& out);
void emit_ecc_errors(const View& view, TextWriter& out);
void emit_retired_pages(const View& view, TextWriter& out);
void emit_retired_pages_pending(const View& view, TextWriter& out);
void emit_remapped_rows(const View& view, TextWriter& out);
void emit_row_remap_pending(const View& view, TextWriter& out);
void emit_row_remap_failed(const View& view, TextWriter& out);
void emit_nvlink_errors(const View& view, TextWriter& out);
void emit_nvlink_bytes(const View& view, TextWriter& out);
void emit_pcie_replays(const View& view, TextWriter& out);
void emit_gpus_expected(const View& view, TextWriter& out);
void emit_gpus_missing(const View& view, TextWriter& out);
void emit_gpus_visible(const View& view, TextWriter& out);
void emit_allocation_info(const View& view, TextWriter& out);
void emit_allocation_idle(const View& view, TextWriter& out);
void emit_allocatable(const View& view, TextWriter& out);
void emit_exact_time(const View& view, TextWriter& out);
void emit_device_switches(const View& view, TextWriter& out);
void emit_device_switch_seconds(const View& view, TextWriter& out);
void emit_gpu_seconds_source(const View& view, TextWriter& out);
void emit_exact_time_lost(const View& view, TextWriter& out);

void emit_pod_energy(const View& view, TextWriter& out);
void emit_pod_energy_error(const View& view, TextWriter& out);
void emit_pod_gpu_seconds(const View& view, TextWriter& out);
void emit_pod_idle_memory(const View& view, TextWriter& out);
void emit_pod_info(const View& view, TextWriter& out);
void emit_slurm_energy(const View& view, TextWriter& out);
void emit_slurm_energy_error(const View& view, TextWriter& out);
void emit_slurm_gpu_seconds(const View& view, TextWriter& out);
void emit_container_energy(const View& view, TextWriter& out);
void emit_container_energy_error(const View& view, TextWriter& out);
void emit_container_gpu_seconds(const View& view, TextWriter& out);
void emit_host_energy(const View& view, TextWriter& out);
void emit_host_energy_error(const View& view, TextWriter& out);
void emit_host_gpu_seconds(const View& view, TextWriter& out);
void emit_unknown_energy(const View& view, TextWriter& out);
void emit_unknown_energy_error(const View& view, TextWriter& out);
void emit_unknown_gpu_seconds(const View& view, TextWriter& out);

void emit_closed_energy(const View& view, TextWriter& out);
void emit_closed_gpu_seconds(const View& view, TextWriter& out);

void emit_build(const View& view, TextWriter& out);
void emit_simulated(const View& view, TextWriter& out);
void emit_source_up(const View& view, TextWriter& out);
void emit_source_errors(const View& view, TextWriter& out);
void emit_sample_duration(const View& view, TextWriter& out);
void emit_call_duration(const View& view, TextWriter& out);
void emit_snapshot_time(const View& view, TextWriter& out);
void emit_without_owner(const View& view, TextWriter& out);
void emit_pod_names_missing(const View& view, TextWriter& out);
void emit_own_cpu(const View& view, TextWriter& out);
void emit_own_start_time(const View& view, TextWriter& out);
void emit_own_resident(const View& view, TextWriter& out);
void emit_own_virtual(const View& view, TextWriter& out);
void emit_own_open_fds(const View& view, TextWriter& out);
void emit_own_max_fds(const View& view, TextWriter& out);
void emit_own_threads(const View& view, TextWriter& out);
void emit_folded(const View& view, TextWriter& out);
// What was written before it.
void emit_series_left_out(const View& view, TextWriter& out);
// Counts what was written before it, so it must be the last family.
void emit_series(const View& view, TextWriter& out);

// The two series of an energy counter: what was measured and what was estimated. Each begins once it is not
// zero, but there is always one.
void add_booked_energy(TextWriter& out, const std::string& labels, const Booked& booked);

}  // namespace gpuledger::expose
