#include "expose/catalog.h"

#include <set>

#include "expose/emit.h"
#include "expose/escape.h"

namespace gpuledger::expose {
namespace {

constexpr std::string_view kProcess =
    "pid gpu process_name pod namespace container pod_uid container_id mig_uuid mig_profile";
constexpr std::string_view kIdleProcess = "gpu pid process pod namespace container";
constexpr std::string_view kIdleDevice = "gpu model uuid";
constexpr std::string_view kOwnerError =
    "One standard deviation of the estimated part of the owner's joules. Errors of processes on one GPU are "
    "correlated, so it is not the sum of the processes' errors. Absent while nothing is estimated.";
constexpr std::string_view kListed = "gpu pid command pod namespace gi_id ci_id";

constexpr Family kCatalog[] = {
    {"process", "_energy_joules_total", MetricType::kCounter, "joules",
     "pid gpu process_name pod namespace container pod_uid container_id mig_uuid mig_profile energy_estimated",
     "Energy the process used on the GPU: booked while it was alone on it (energy_estimated false) and "
     "while it shared it (true). The sum of both is the process's energy.",
     emit_process_energy},
    {"process", "_energy_standard_error_joules", MetricType::kGauge, "joules", kProcess,
     "One standard deviation of the estimated part of the process's energy.", emit_process_energy_error},
    {"process", "_gpu_seconds_total", MetricType::kCounter, "seconds", kProcess, "Time the process kept the GPU busy.",
     emit_process_gpu_seconds},
    {"process", "_sm_utilization_ratio", MetricType::kGauge, "ratio", kProcess,
     "Share of time the process kept the streaming multiprocessors busy, 0 to 1.", emit_process_sm},
    {"process", "_memory_utilization_ratio", MetricType::kGauge, "ratio", kProcess,
     "Share of time the process kept the GPU's memory interface busy, 0 to 1.", emit_process_memory_utilization},
    {"process", "_memory_used_bytes", MetricType::kGauge, "bytes", kProcess, "GPU memory the process holds.",
     emit_process_memory_used},
    {"process", "_start_time_seconds", MetricType::kGauge, "seconds", kProcess,
     "When the process started, in seconds since 1970.", emit_process_start_time},
    {"process", "_active", MetricType::kGauge, "", kProcess,
     "1 while the process runs, 0 once it has exited and until --metric-retention is over.", emit_process_active},
    {"process", "_switches_total", MetricType::kCounter, "", kProcess,
     "How often the process was given the GPU, since the program started. Only with --exact-time.",
     emit_process_switches},
    {"idle", "gpu_idle_process_compute_utilization_percent", MetricType::kGauge, "percent", kIdleProcess,
     "Highest SM utilization of the process since the last evaluation of idleness, 0 to 100.",
     emit_idle_process_utilization},
    {"idle", "gpu_idle_process_memory_used_bytes", MetricType::kGauge, "bytes", kIdleProcess,
     "GPU memory the process holds.", emit_idle_process_memory_used},
    {"idle", "gpu_idle_process_idle_seconds", MetricType::kGauge, "seconds", kIdleProcess,
     "Time since the process was last seen to work while it holds GPU memory; 0 while it works. Absent until that is "
     "known, and where the GPU cannot say who works.",
     emit_idle_process_seconds},
    {"idle", "gpu_idle_process_idle_memory_bytes", MetricType::kGauge, "bytes", kIdleProcess,
     "GPU memory the process holds while idle; 0 while it works.", emit_idle_process_memory},
    {"idle", "gpu_idle_device_utilization_percent", MetricType::kGauge, "percent", kIdleDevice,
     "Share of time any kernel ran on the GPU, 0 to 100.", emit_idle_device_utilization},
    {"idle", "gpu_idle_device_memory_used_bytes", MetricType::kGauge, "bytes", kIdleDevice, "GPU memory in use.",
     emit_idle_device_memory_used},
    {"idle", "gpu_idle_device_memory_total_bytes", MetricType::kGauge, "bytes", kIdleDevice, "GPU memory there is.",
     emit_idle_device_memory_total},
    {"idle", "gpu_idle_device_power_watts", MetricType::kGauge, "watts", kIdleDevice, "Power the GPU draws.",
     emit_idle_device_power},
    {"idle", "gpu_idle_device_temperature_celsius", MetricType::kGauge, "celsius", kIdleDevice,
     "Temperature of the GPU.", emit_idle_device_temperature},
    {"idle", "gpu_idle_memory_total_bytes", MetricType::kGauge, "bytes", "gpu",
     "GPU memory held by all idle processes of the GPU. Absent until it is known of one of them whether it is idle, "
     "and "
     "where the GPU cannot say who works.",
     emit_idle_memory_total},
    {"processlist", "gpu_process_count", MetricType::kGauge, "", "gpu", "Processes on the GPU.", emit_list_count},
    {"processlist", "gpu_total_processes", MetricType::kGauge, "", "",
     "Processes on all GPUs; one that uses two GPUs counts twice.", emit_list_total},
    {"processlist", "gpu_process_info", MetricType::kGauge, "",
     "gpu pid command pod namespace gi_id ci_id container status gpu_memory",
     "A process on a GPU, always 1. The pid label names GPU and pid, as in gpu1_12345; status is active, idle or, "
     "where nobody can say, unknown; "
     "gpu_memory is in MiB.",
     emit_list_info},
    {"processlist", "gpu_process_utilization", MetricType::kGauge, "", kListed,
     "SM utilization of the process in percent, 0 to 100.", emit_list_utilization},
    {"processlist", "gpu_process_memory_utilization", MetricType::kGauge, "", kListed,
     "GPU memory the process holds, in percent of the GPU's memory (on MIG of the instance's).",
     emit_list_memory_utilization},
    {"device", "gpu_ledger_device_info", MetricType::kGauge, "",
     "gpu uuid model pci_bus_id driver mig_mode energy_source accounting_mode",
     "A GPU, always 1. mig_mode is enabled, disabled or unsupported, and absent where DCGM alone is asked and says "
     "that it is off; energy_source is counter or power_integral.",
     emit_device_info},
    {"device", "gpu_ledger_device_up", MetricType::kGauge, "", "gpu uuid",
     "1 while the GPU answers, 0 while it is lost.", emit_device_up},
    {"device", "gpu_ledger_device_energy_joules_total", MetricType::kCounter, "joules", "gpu uuid",
     "Energy the GPU used since the ledger began. Equals the owners' counters of this GPU plus the closed accounts "
     "plus the unattributed energy.",
     emit_device_energy},
    {"device", "gpu_ledger_device_unattributed_joules_total", MetricType::kCounter, "joules", "gpu uuid reason",
     "Energy that belongs to no process: idle (nobody held the GPU), static (idle watts under --static-"
     "power=separate), unseen (the driver named nobody to charge), exporter_down (spent while nobody "
     "looked), anomaly (more than the GPU can draw).",
     emit_device_unattributed},
    {"device", "gpu_ledger_device_power_watts", MetricType::kGauge, "watts", "gpu uuid", "Power the GPU draws.",
     emit_device_power},
    {"device", "gpu_ledger_device_idle_power_watts", MetricType::kGauge, "watts", "gpu uuid",
     "Power the GPU draws when nobody uses it, learned or given by --gpu-idle-power.", emit_device_idle_power},
    {"device", "gpu_ledger_xid_errors_total", MetricType::kCounter, "", "gpu uuid xid",
     "Xid errors the driver reported.", emit_device_xids},
    {"device", "gpu_ledger_xid_last_seen_timestamp_seconds", MetricType::kGauge, "seconds", "gpu uuid xid",
     "When the driver last reported this Xid error, in seconds since 1970.", emit_xid_seen},
    {"device", "gpu_ledger_temperature_celsius", MetricType::kGauge, "celsius", "gpu uuid sensor",
     "Temperature of the GPU (sensor gpu) and of its memory (memory).", emit_temperature},
    {"device", "gpu_ledger_clock_hertz", MetricType::kGauge, "hertz", "gpu uuid domain",
     "Clock of the multiprocessors (domain sm) and of the memory (memory).", emit_clock},
    {"device", "gpu_ledger_fan_speed_ratio", MetricType::kGauge, "ratio", "gpu uuid",
     "Speed the fan is told to have, of its full speed. Absent on GPUs without a fan.", emit_fan},
    {"device", "gpu_ledger_throttle_active", MetricType::kGauge, "", "gpu uuid reason",
     "1 while the clocks are held back for this reason, else 0. A GPU that idles is not held back.",
     emit_throttle_active},
    {"device", "gpu_ledger_throttle_seconds_total", MetricType::kCounter, "seconds", "gpu uuid reason",
     "Time the clocks were held back for this reason since the driver was loaded.", emit_throttle_seconds},
    {"device", "gpu_ledger_ecc_errors_total", MetricType::kCounter, "", "gpu uuid type scope",
     "Memory errors that ECC corrected or could not correct, since the driver was loaded (scope volatile) and in the "
     "GPU's life (aggregate).",
     emit_ecc_errors},
    {"device", "gpu_ledger_retired_pages", MetricType::kGauge, "", "gpu uuid cause",
     "Memory pages taken out of use for double-bit or repeated single-bit errors; up to Turing.", emit_retired_pages},
    {"device", "gpu_ledger_retired_pages_pending", MetricType::kGauge, "", "gpu uuid",
     "1 while pages wait for a reset of the GPU to be taken out of use, else 0.", emit_retired_pages_pending},
    {"device", "gpu_ledger_remapped_rows", MetricType::kGauge, "", "gpu uuid cause",
     "Memory rows replaced by spare ones; from Ampere on.", emit_remapped_rows},
    {"device", "gpu_ledger_row_remap_pending", MetricType::kGauge, "", "gpu uuid",
     "1 while rows wait for a reset of the GPU to be replaced, else 0.", emit_row_remap_pending},
    {"device", "gpu_ledger_row_remap_failed", MetricType::kGauge, "", "gpu uuid",
     "1 when a row could not be replaced, else 0: the GPU should be.", emit_row_remap_failed},
    {"device", "gpu_ledger_nvlink_errors_total", MetricType::kCounter, "", "gpu uuid kind",
     "Errors on all NVLinks of the GPU.", emit_nvlink_errors},
    {"device", "gpu_ledger_nvlink_bytes_total", MetricType::kCounter, "bytes", "gpu uuid direction",
     "Data on all NVLinks of the GPU.", emit_nvlink_bytes},
    {"device", "gpu_ledger_pcie_replays_total", MetricType::kCounter, "", "gpu uuid",
     "Packets that had to be sent again over PCIe.", emit_pcie_replays},
    {"device", "gpu_ledger_gpus_expected", MetricType::kGauge, "", "",
     "GPUs the driver found at its start (/proc/driver/nvidia/gpus). Absent where that cannot be seen, with "
     "--gpu-devices, and in a container that NVIDIA_VISIBLE_DEVICES gives some of them.",
     emit_gpus_expected},
    {"device", "gpu_ledger_gpus_missing", MetricType::kGauge, "", "",
     "GPUs that --gpu-devices names and that are not there. Absent without --gpu-devices.", emit_gpus_missing},
    {"device", "gpu_ledger_gpus_visible", MetricType::kGauge, "", "", "GPUs that answer.", emit_gpus_visible},
    {"device", "gpu_ledger_allocation_info", MetricType::kGauge, "",
     "gpu uuid mig_uuid namespace pod container resource replica",
     "A GPU, MIG instance or replica that Kubernetes gave to a container, always 1. Being given is not using.",
     emit_allocation_info},
    {"device", "gpu_ledger_allocation_idle_seconds", MetricType::kGauge, "seconds",
     "gpu uuid mig_uuid namespace pod container",
     "Time since the container last worked on the GPU it was given, 0 while it works. Absent where the GPU cannot "
     "say who works.",
     emit_allocation_idle},
    {"device", "gpu_ledger_allocatable_devices", MetricType::kGauge, "", "",
     "GPUs, MIG instances and replicas that the kubelet can give to pods, given or not. Absent where it cannot say.",
     emit_allocatable},
    {"device", "gpu_ledger_exact_time", MetricType::kGauge, "", "gpu uuid",
     "1 while the driver's trace of context switches is read and trusted, 0 while it is not and time is split by "
     "samples. Only with --exact-time.",
     emit_exact_time},
    {"device", "gpu_ledger_gpu_seconds_source", MetricType::kGauge, "", "gpu uuid source",
     "What tells at present how long each process worked on the GPU, always 1: trace (exact, by the driver's "
     "context-switch trace) or samples (estimated, by the driver's samples). Absent while nobody is there or nothing "
     "tells.",
     emit_gpu_seconds_source},
    {"device", "gpu_ledger_device_switches_total", MetricType::kCounter, "", "gpu uuid",
     "How often a process was given the GPU, since the program started. Only with --exact-time.", emit_device_switches},
    {"device", "gpu_ledger_device_switch_seconds_total", MetricType::kCounter, "seconds", "gpu uuid",
     "Time the GPU spent between two processes: it belongs to nobody. Only with --exact-time.",
     emit_device_switch_seconds},
    {"device", "gpu_ledger_exact_time_lost_records_total", MetricType::kCounter, "", "gpu uuid",
     "Records of the trace that were lost; the time they would have told of is split by samples. Only with "
     "--exact-time.",
     emit_exact_time_lost},
    {"pod", "gpu_ledger_pod_energy_joules_total", MetricType::kCounter, "joules",
     "namespace pod container pod_uid gpu energy_estimated",
     "Energy of all processes of a Kubernetes container, living and gone.", emit_pod_energy},
    {"pod", "gpu_ledger_pod_energy_standard_error_joules", MetricType::kGauge, "joules",
     "namespace pod container pod_uid gpu", kOwnerError, emit_pod_energy_error},
    {"pod", "gpu_ledger_pod_gpu_seconds_total", MetricType::kCounter, "seconds", "namespace pod container pod_uid gpu",
     "Time all processes of a Kubernetes container, living and gone, kept the GPU busy.", emit_pod_gpu_seconds},
    {"pod", "gpu_ledger_pod_idle_memory_bytes", MetricType::kGauge, "bytes", "namespace pod container pod_uid gpu",
     "GPU memory held by idle processes of a Kubernetes container. Absent where the GPU cannot say who "
     "works, and for containers without any process left.",
     emit_pod_idle_memory},
    {"pod", "gpu_ledger_pod_info", MetricType::kGauge, "", "namespace pod pod_uid name_source label_*",
     "A pod that uses a GPU or was given one, always 1. label_* are the pod's labels that --pod-labels names; "
     "name_source says who told the pod's name.",
     emit_pod_info},
    {"pod", "gpu_ledger_slurm_job_energy_joules_total", MetricType::kCounter, "joules", "job step gpu energy_estimated",
     "Energy of all processes of a Slurm job step, living and gone.", emit_slurm_energy},
    {"pod", "gpu_ledger_slurm_job_energy_standard_error_joules", MetricType::kGauge, "joules", "job step gpu",
     kOwnerError, emit_slurm_energy_error},
    {"pod", "gpu_ledger_slurm_job_gpu_seconds_total", MetricType::kCounter, "seconds", "job step gpu",
     "Time all processes of a Slurm job step, living and gone, kept the GPU busy.", emit_slurm_gpu_seconds},
    {"pod", "gpu_ledger_container_energy_joules_total", MetricType::kCounter, "joules",
     "runtime container_id container gpu energy_estimated",
     "Energy of all processes of a container outside Kubernetes, living and gone.", emit_container_energy},
    {"pod", "gpu_ledger_container_energy_standard_error_joules", MetricType::kGauge, "joules",
     "runtime container_id container gpu", kOwnerError, emit_container_energy_error},
    {"pod", "gpu_ledger_container_gpu_seconds_total", MetricType::kCounter, "seconds",
     "runtime container_id container gpu",
     "Time all processes of a container outside Kubernetes, living and gone, kept the GPU busy.",
     emit_container_gpu_seconds},
    {"pod", "gpu_ledger_host_energy_joules_total", MetricType::kCounter, "joules", "unit user gpu energy_estimated",
     "Energy of all processes, living and gone, that belong to no pod, Slurm job or container, by systemd service and "
     "uid.",
     emit_host_energy},
    {"pod", "gpu_ledger_host_energy_standard_error_joules", MetricType::kGauge, "joules", "unit user gpu", kOwnerError,
     emit_host_energy_error},
    {"pod", "gpu_ledger_host_gpu_seconds_total", MetricType::kCounter, "seconds", "unit user gpu",
     "Time all processes, living and gone, that belong to no pod, Slurm job or container kept the GPU busy.",
     emit_host_gpu_seconds},
    {"pod", "gpu_ledger_unknown_owner_energy_joules_total", MetricType::kCounter, "joules", "gpu energy_estimated",
     "Energy of processes that were gone before their owner could be read. They may belong to a pod, a Slurm job, a "
     "container or the host.",
     emit_unknown_energy},
    {"pod", "gpu_ledger_unknown_owner_energy_standard_error_joules", MetricType::kGauge, "joules", "gpu", kOwnerError,
     emit_unknown_energy_error},
    {"pod", "gpu_ledger_unknown_owner_gpu_seconds_total", MetricType::kCounter, "seconds", "gpu",
     "Time processes that were gone before their owner could be read kept the GPU busy.", emit_unknown_gpu_seconds},
    {"pod", "gpu_ledger_closed_energy_joules", MetricType::kGauge, "joules", "kind namespace gpu energy_estimated",
     "Energy of owners that have no series of their own any more: they ended and --owner-retention is over, or "
     "--max-ended-owners or --max-series left them out. A gauge, because owners come and go: increase() over the "
     "owners' counters has their joules already. kind is pod, slurm_job, container, host or unknown.",
     emit_closed_energy},
    {"pod", "gpu_ledger_closed_gpu_seconds", MetricType::kGauge, "seconds", "kind namespace gpu",
     "Time on the GPU of owners that have no series of their own any more.", emit_closed_gpu_seconds},
    {"self", "gpu_ledger_build_info", MetricType::kGauge, "", "version", "The running program, always 1.", emit_build},
    {"self", "gpu_ledger_simulated", MetricType::kGauge, "", "",
     "1 while the numbers come from the simulated node; absent on real GPUs.", emit_simulated},
    {"self", "gpu_ledger_source_up", MetricType::kGauge, "", "source",
     "1 while the source answers, 0 while it does not.", emit_source_up},
    {"self", "gpu_ledger_source_errors_total", MetricType::kCounter, "", "source code",
     "Failures of the source since the program started.", emit_source_errors},
    {"self", "gpu_ledger_sample_duration_seconds", MetricType::kHistogram, "seconds", "",
     "Time one whole cycle took, from the driver to the finished exposition.", emit_sample_duration},
    {"self", "gpu_ledger_driver_call_duration_seconds", MetricType::kHistogram, "seconds", "call",
     "Time spent inside a driver call.", emit_call_duration},
    {"self", "gpu_ledger_snapshot_timestamp_seconds", MetricType::kGauge, "seconds", "",
     "When the GPUs were sampled for this exposition, in seconds since 1970.", emit_snapshot_time},
    {"self", "gpu_ledger_processes_without_owner", MetricType::kGauge, "", "",
     "Processes that run in a container or pod whose name was not found.", emit_without_owner},
    {"self", "gpu_ledger_pod_names_missing", MetricType::kGauge, "", "",
     "1 while a kubelet or a cluster is to be seen and nobody tells the names of pods, else 0. Absent without "
     "Kubernetes. gpu_ledger_source_up says who does not, the log and gpu-ledger doctor say why.",
     emit_pod_names_missing},
    {"self", "gpu_ledger_accounts_folded_total", MetricType::kCounter, "", "account reason",
     "Accounts given up since the program started: processes beyond --max-exited-processes (reason limit; their owner "
     "keeps the joules), owners after --owner-retention (retention) or beyond --max-ended-owners (limit), whose joules "
     "are in gpu_ledger_closed_energy_joules.",
     emit_folded},
    {"self", "process_cpu_seconds_total", MetricType::kCounter, "seconds", "",
     "User and system CPU time of the exporter.", emit_own_cpu},
    {"self", "process_start_time_seconds", MetricType::kGauge, "seconds", "",
     "When the exporter started, in seconds since 1970.", emit_own_start_time},
    {"self", "process_resident_memory_bytes", MetricType::kGauge, "bytes", "", "Resident memory of the exporter.",
     emit_own_resident},
    {"self", "process_virtual_memory_bytes", MetricType::kGauge, "bytes", "", "Virtual memory of the exporter.",
     emit_own_virtual},
    {"self", "process_open_fds", MetricType::kGauge, "", "", "Open file descriptors of the exporter.",
     emit_own_open_fds},
    {"self", "process_max_fds", MetricType::kGauge, "", "",
     "Most file descriptors the exporter may open; absent when there is no limit.", emit_own_max_fds},
    {"self", "process_threads", MetricType::kGauge, "", "", "Threads of the exporter.", emit_own_threads},
    {"self", "gpu_ledger_series_left_out", MetricType::kGauge, "", "collector",
     "Series that are not in this exposition because of --max-series, by collector. Those of the smallest spenders.",
     emit_series_left_out},
    {"self", "gpu_ledger_series", MetricType::kGauge, "", "", "Samples in this exposition, this one included.",
     emit_series},
};

}  // namespace

std::span<const Family> catalog() {
  return kCatalog;
}

std::string full_name(const Family& family, std::string_view process_prefix) {
  return family.name.starts_with('_') ? std::string(process_prefix).append(family.name) : std::string(family.name);
}

Status check_process_prefix(const std::string& prefix) {
  if (!is_metric_name(prefix)) return Error{Code::kMalformed, "\"" + prefix + "\" is no metric name"};
  std::set<std::string> names;
  for (const Family& family : kCatalog) {
    const std::string name = full_name(family, prefix);
    if (!names.insert(name).second) {
      return Error{Code::kMalformed, "with the prefix \"" + prefix + "\" two metrics would be called " + name};
    }
  }
  return ok_status();
}

}  // namespace gpuledger::expose
