// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "expose/collectors/collectors.h"
#include "expose/words.h"

// The GPUs, their books and their allocations by Kubernetes and Slurm. Their health is in health.cc.
namespace gpuledger::expose {
namespace {

// A label whose value needs no escapes.
std::string label(std::string_view name, std::string_view value) {
  return std::string(name).append("=\"").append(value).append("\"");
}

std::optional<double> value_of(const std::optional<Ratio>& ratio) {
  return ratio ? std::optional(ratio->value) : std::nullopt;
}

// Calls add for each MIG instance, with its labels.
template <typename Add>
void add_instances(const DeviceSeries& device, Add add) {
  static const ConstantLabels kNone;
  if (!device.up()) return;
  for (const MigInstance& instance : device.account->description->mig) {
    LabelText labels(kNone);
    labels.add("mig_uuid", instance.uuid).add("mig_profile", instance.profile);
    labels.add("gi_id", instance.id.gpu_instance).add("ci_id", instance.id.compute_instance);
    add(instance, labels);
  }
}

void add_info(const DeviceSeries& device, Samples& samples) {
  const DeviceDescription& description = *device.account->description;
  LabelText labels = samples.view().labels();
  labels.add("gpu", description.index)
      .add("uuid", description.uuid.text)
      .add("model", description.model)
      .add("pci_bus_id", description.pci_bus_id)
      .add("driver", description.driver)
      .add("mig_mode", mig_mode_name(description))
      .add("energy_source", energy_source_name(description.energy_source))
      .add("serial", description.serial)
      .add("vbios_version", description.vbios_version);
  if (description.accounting_enabled) {
    labels.add("accounting_mode", *description.accounting_enabled ? "enabled" : "disabled");
  }
  samples.add_as(labels.take(), uint64_t{1});
}

template <typename T>
std::optional<T> of_opening(const DeviceSeries& device, T BooksOpening::*member) {
  const auto& opening = device.account->opening;
  return opening ? std::optional((*opening).*member) : std::nullopt;
}

constexpr Row<DeviceSeries> kDeviceRows[] = {
    {"gpu_ledger_device_info", kGauge,
     "model pci_bus_id driver mig_mode energy_source serial vbios_version accounting_mode",
     "A GPU, always 1. mig_mode is enabled, disabled or unsupported; it is absent if DCGM is the only source and "
     "reports MIG as off. energy_source is counter or power_integral. serial and vbios_version are absent if the GPU "
     "does not report them.",
     [](const DeviceSeries& device, Samples& samples) { add_info(device, samples); }},
    {"gpu_ledger_device_up", kGauge, "", "1 while the GPU answers, 0 while it is lost.",
     [](const DeviceSeries& device) { return device.account->up; }, "up"},
    {"gpu_ledger_device_energy_joules_total", kCounter, "",
     "Energy of the GPU in joules since the ledger began. Equals the sum of the owners' counters of this GPU, the "
     "closed accounts and the unattributed energy.",
     [](const DeviceSeries& device) { return device.account->measured; }, "energy_joules"},
    {"gpu_ledger_books_opened_timestamp_seconds", kGauge, "",
     "Time at which all counters of this GPU began at 0, in seconds since 1970. With --state-file it stays the same "
     "over restarts. Absent if the counters go on from the state file of an older version, which does not say it.",
     [](const DeviceSeries& device) { return of_opening(device, &BooksOpening::at); }, "books_opened_seconds"},
    {"gpu_ledger_books_run", kGauge, "",
     "Number of the run of the program with these counters of the GPU: 1 when they began, one more each time they are "
     "read from the state file. Absent while gpu_ledger_books_opened_timestamp_seconds is.",
     [](const DeviceSeries& device) { return of_opening(device, &BooksOpening::run); }, "books_run"},
    {"gpu_ledger_device_unattributed_joules_total", kCounter, "reason",
     "Energy in joules that belongs to no process: idle (no process held the GPU), static (idle watts under "
     "--static-power=separate), unseen (the driver named no process to charge), exporter_down (used while there were "
     "no samples), anomaly (more than the power limit of the GPU allows).",
     [](const DeviceSeries& device, Samples& samples) {
       for (size_t i = 0; i < kReasonCount; ++i) {
         samples.add(device.account->unattributed[i], label("reason", reason_name(static_cast<Reason>(i))));
       }
     }},
    {"gpu_ledger_device_refused_readings_total", kCounter, "",
     "Readings of the GPU that were left out because they cannot be true: energy or power that the GPU cannot have "
     "drawn, a hardware counter that fell or jumped, an Xid error of a new number after 64 others. After a reload of "
     "the driver two energy readings count too; the joules since the reload are booked with the third. Absent before "
     "the first.",
     [](const DeviceSeries& device) {
       const uint64_t refused = device.account->refused_readings;
       return refused > 0 ? std::optional(refused) : std::nullopt;
     },
     "refused_readings"},
    {"gpu_ledger_device_power_watts", kGauge, "",
     "Power draw of the GPU in watts. Absent if the GPU does not report it.",
     [](const DeviceSeries& device) { return device.reading().power; }, "power_watts"},
    {"gpu_ledger_device_power_limit_watts", kGauge, "",
     "Power limit in watts that the GPU keeps to: the lowest of all limits that are set. Absent if the GPU does not "
     "report it.",
     [](const DeviceSeries& device) { return device.up() ? device.account->description->power_limit : std::nullopt; },
     "power_limit_watts"},
    {"gpu_ledger_device_utilization_ratio", kGauge, "",
     "Share of time in which any kernel ran on the GPU, 0 to 1. Absent if the GPU does not report it, for example with "
     "MIG.",
     [](const DeviceSeries& device) { return value_of(device.reading().gpu_utilization); }, "utilization_ratio"},
    {"gpu_ledger_device_memory_used_bytes", kGauge, "",
     "Used GPU memory in bytes. Absent if the GPU does not report it.",
     [](const DeviceSeries& device) { return device.reading().memory_used; }, "memory_used_bytes"},
    {"gpu_ledger_device_memory_total_bytes", kGauge, "",
     "Total GPU memory in bytes. Absent if the GPU does not report it.",
     [](const DeviceSeries& device) { return device.reading().memory_total; }, "memory_total_bytes"},
    {"gpu_ledger_device_idle_power_watts", kGauge, "",
     "Power draw of the GPU in watts without processes, learned or set by --gpu-idle-power. Absent until it is known.",
     [](const DeviceSeries& device) { return device.up() ? device.account->idle_power : std::nullopt; },
     "idle_power_watts"},
    {"gpu_ledger_attribution_error_ratio", kGauge, "",
     "Estimated share of the energy above the static watts, of times with several processes on the GPU, that was "
     "charged to the wrong process, 0 to 1. When a process becomes or stops being alone on the GPU, its charges are "
     "compared with its measured power; mean of about the last 50 comparisons, by joules. Absent before the first.",
     [](const DeviceSeries& device) { return device.account->attribution_error; }, "attribution_error_ratio"},
    {"gpu_ledger_attribution_comparisons_total", kCounter, "",
     "Comparisons of the charges of a process with its measured power, when it became or stopped being alone on the "
     "GPU. gpu_ledger_attribution_error_ratio is their result.",
     [](const DeviceSeries& device) { return device.account->attribution_comparisons; }, "attribution_comparisons"},
    {"gpu_ledger_xid_errors_total", kCounter, "xid", "Xid errors that the driver reported. Absent before the first.",
     [](const DeviceSeries& device, Samples& samples) {
       for (const auto& [xid, count] : device.account->xids) samples.add(count, label("xid", std::to_string(xid)));
     }},
    {"gpu_ledger_xid_last_seen_timestamp_seconds", kGauge, "xid",
     "Time of the last Xid error of this number, in seconds since 1970. Absent before the first.",
     [](const DeviceSeries& device, Samples& samples) {
       for (const auto& [xid, seen] : device.account->xid_seen) {
         // In milliseconds: the nanoseconds only order Xids of one sample.
         samples.add(Thousandths{seen.count() / 1'000'000}, label("xid", std::to_string(xid)));
       }
     }},
};

// Of the GPU instance, which may hold several compute instances.
template <typename Get>
void add_activity(const DeviceSeries& device, Samples& samples, Get get) {
  add_instances(device, [&](const MigInstance& instance, LabelText& labels) {
    const auto& known = device.reading().instance_activity;
    const auto found = known.find(instance.id.gpu_instance);
    if (found != known.end()) samples.add(value_of(get(found->second)), labels.take());
  });
}

constexpr Row<DeviceSeries> kMigRows[] = {
    {"gpu_ledger_mig_instance_info", kGauge, "mig_uuid mig_profile gi_id ci_id compute_slices",
     "A MIG instance of the GPU, always 1. mig_profile and compute_slices are absent if the driver does not describe "
     "the instance.",
     [](const DeviceSeries& device, Samples& samples) {
       add_instances(device, [&](const MigInstance& instance, LabelText& labels) {
         if (instance.compute_slices > 0) labels.add("compute_slices", instance.compute_slices);
         samples.add(uint64_t{1}, labels.take());
       });
     }},
    {"gpu_ledger_mig_instance_memory_total_bytes", kGauge, "mig_uuid mig_profile gi_id ci_id",
     "Memory of the MIG instance in bytes. Absent if the driver does not report it.",
     [](const DeviceSeries& device, Samples& samples) {
       add_instances(device, [&](const MigInstance& instance, LabelText& labels) {
         samples.add(instance.memory_total, labels.take());
       });
     }},
    {"gpu_ledger_mig_instance_memory_used_bytes", kGauge, "mig_uuid mig_profile gi_id ci_id",
     "Used memory of the MIG instance in bytes, at the last process scan. Absent if the driver does not report it.",
     [](const DeviceSeries& device, Samples& samples) {
       add_instances(device, [&](const MigInstance& instance, LabelText& labels) {
         samples.add(instance.memory_used, labels.take());
       });
     }},
    {"gpu_ledger_mig_instance_utilization_ratio", kGauge, "mig_uuid mig_profile gi_id ci_id",
     "Share of time in which any kernel ran on the GPU instance, 0 to 1. Absent if neither the driver (before Hopper) "
     "nor DCGM reports it.",
     [](const DeviceSeries& device, Samples& samples) {
       add_activity(device, samples, [](const Activity& activity) { return activity.graphics; });
     }},
    {"gpu_ledger_mig_instance_sm_active_ratio", kGauge, "mig_uuid mig_profile gi_id ci_id",
     "Share of the GPU instance's multiprocessors that had work, averaged over time, 0 to 1. Absent if neither the "
     "driver (before Hopper) nor DCGM reports it.",
     [](const DeviceSeries& device, Samples& samples) {
       add_activity(device, samples, [](const Activity& activity) { return activity.parts[Activity::kSm]; });
     }},
};

constexpr Row<View> kCountRows[] = {
    {"gpu_ledger_gpus_expected", kGauge, "",
     "GPUs that the driver found at its start (/proc/driver/nvidia/gpus). Absent if that cannot be read, with "
     "--gpu-devices, and in a container that has only some GPUs by NVIDIA_VISIBLE_DEVICES.",
     [](const View& view) { return view.cycle.gpus_expected; }},
    {"gpu_ledger_gpus_missing", kGauge, "",
     "GPUs that --gpu-devices names and that were not found. Absent without --gpu-devices.",
     [](const View& view) {
       const auto& missing = view.cycle.batch.missing_gpus;
       return missing ? std::optional<uint64_t>(missing->size()) : std::nullopt;
     }},
    {"gpu_ledger_node_boot_timestamp_seconds", kGauge, "",
     "Time at which the node booted, in seconds since 1970, from /proc/stat. Absent if that cannot be read.",
     [](const View& view) { return view.cycle.booted_at; }},
    {"gpu_ledger_gpus_visible", kGauge, "", "GPUs that answer.",
     [](const View& view) {
       uint64_t answering = 0;
       for (const DeviceSeries& device : view.devices) answering += device.account->up ? 1 : 0;
       return answering;
     }},
};

constexpr Row<AllocationSeries> kAllocationRows[] = {
    {"gpu_ledger_allocation_info", kGauge, "resource replica",
     "A GPU, MIG instance or replica that Kubernetes allocated to a container, always 1. It may be unused. Absent if "
     "the kubelet's pod-resources cannot be read.",
     [](const AllocationSeries& series, Samples& samples) {
       LabelText labels = place_labels(samples.view(), series.account->allocation);
       labels.add("resource", series.account->allocation.resource);
       if (series.account->allocation.replica) labels.add("replica", *series.account->allocation.replica);
       samples.add_as(labels.take(), uint64_t{1});
     }},
    {"gpu_ledger_allocation_idle_seconds", kGauge, "",
     "Seconds since the container last worked on its allocated GPU, 0 while it works. Absent while it is not known "
     "whether it works, for example under MPS.",
     [](const AllocationSeries& series) { return series.first_of_place ? series.account->idle_for : std::nullopt; }},
};

constexpr Row<AllocationSeries> kSlurmAllocationRows[] = {
    {"gpu_ledger_slurm_allocation_info", kGauge, "uid user_name account partition",
     "A GPU that Slurm allocated to a job, always 1, from the job's start to its end, even if unused. Read from the "
     "file that the site's prolog writes (--slurm-job-dir). Absent without that file, and on MIG.",
     [](const AllocationSeries& series, Samples& samples) {
       static const ConstantLabels kNone;
       LabelText labels(kNone);
       const auto& holders = samples.view().cycle.identities->slurm_holders;
       if (const auto holder = holders.find(series.account->allocation.job.str()); holder != holders.end()) {
         labels.add("uid", holder->second.uid)
             .add("user_name", holder->second.user_name)
             .add("account", holder->second.facts.account)
             .add("partition", holder->second.facts.partition);
       }
       samples.add(uint64_t{1}, labels.take());
     }},
    {"gpu_ledger_slurm_allocation_idle_seconds", kGauge, "",
     "Seconds since the job last worked on its allocated GPU, 0 while it works. Absent while it is not known whether "
     "it works, for example under MPS.",
     [](const AllocationSeries& series) { return series.account->idle_for; }},
};

constexpr Row<AllocationSeries> kGivenRows[] = {
    {"gpu_ledger_container_allocated_devices", kGauge, "",
     "GPUs, MIG instances or replicas of a resource that Kubernetes allocated to a container of a pod. Absent if the "
     "kubelet's pod-resources cannot be read.",
     [](const AllocationSeries& series, Samples& samples) {
       if (series.given == 0) return;
       const Allocation& allocation = series.account->allocation;
       samples.add_as(request_labels(samples.view(), allocation.name_space, allocation.pod, allocation.container,
                                     allocation.resource),
                      series.given);
     }},
};

constexpr Row<View> kAllocatableRows[] = {
    {"gpu_ledger_allocatable_devices", kGauge, "",
     "GPUs, MIG instances and replicas that the kubelet can allocate to pods, allocated or not. Absent if the kubelet "
     "does not report them.",
     [](const View& view) { return view.cycle.identities->allocatable; }},
};

// Empty: exact time is off, or the GPU is lost.
template <typename Get>
auto exact(const DeviceSeries& device, Get get) -> std::optional<decltype(get(*device.sample->exact_time))> {
  if (!device.reading().exact_time) return std::nullopt;
  return get(*device.reading().exact_time);
}

constexpr Row<DeviceSeries> kExactTimeRows[] = {
    {"gpu_ledger_exact_time", kGauge, "",
     "1 while the driver's context-switch trace is read and trusted, 0 while GPU time is split by the driver's samples "
     "instead. Absent with --exact-time=off, and with auto without CAP_SYS_ADMIN.",
     [](const DeviceSeries& device) { return exact(device, [](const ExactTime& time) { return time.trusted; }); }},
    {"gpu_ledger_gpu_seconds_source", kGauge, "source",
     "Current source of the GPU time of processes, always 1: trace (exact, from the driver's context-switch trace) or "
     "samples (estimated, from the driver's samples). Absent while no process is on the GPU or there is no source.",
     [](const DeviceSeries& device, Samples& samples) {
       const GpuTimeSource source = device.account->gpu_time_source;
       if (!device.up() || source == GpuTimeSource::kNone) return;
       samples.add(uint64_t{1}, label("source", gpu_time_source_name(source)));
     }},
    {"gpu_ledger_device_switches_total", kCounter, "",
     "Context switches to a process on the GPU since the program started, while traced. Only with exact time.",
     [](const DeviceSeries& device) { return exact(device, [](const ExactTime& time) { return time.switches; }); }},
    {"gpu_ledger_device_switch_seconds_total", kCounter, "",
     "Seconds that the GPU spent in context switches, while traced. They are charged to no process. Only with exact "
     "time.",
     [](const DeviceSeries& device) { return exact(device, [](const ExactTime& time) { return time.switching; }); }},
    {"gpu_ledger_exact_time_lost_records_total", kCounter, "",
     "Lost records of the context-switch trace. The GPU time of their interval is split by the driver's samples. Only "
     "with exact time.",
     [](const DeviceSeries& device) { return exact(device, [](const ExactTime& time) { return time.records_lost; }); }},
};

}  // namespace

std::span<const Row<DeviceSeries>> device_rows() {
  return kDeviceRows;
}

std::span<const Row<AllocationSeries>> allocation_rows() {
  return kAllocationRows;
}

std::span<const Row<AllocationSeries>> slurm_allocation_rows() {
  return kSlurmAllocationRows;
}

std::span<const Row<AllocationSeries>> given_rows() {
  return kGivenRows;
}

std::vector<Family> device_families() {
  CatalogBuilder catalog("device");
  catalog.add(device_rows(), "gpu uuid", &View::devices);
  catalog.add(health_rows(), "gpu uuid", &View::devices);
  catalog.add(rows_of(kMigRows), "gpu uuid", &View::devices);
  catalog.add_of_node(kCountRows);
  catalog.add(allocation_rows(), "gpu uuid mig_uuid namespace pod container pod_uid", &View::allocations);
  catalog.add(given_rows(), "namespace pod container resource", &View::allocations);
  catalog.add(slurm_allocation_rows(), "gpu uuid slurm_job_id", &View::slurm_allocations);
  catalog.add_of_node(kAllocatableRows);
  catalog.add(rows_of(kExactTimeRows), "gpu uuid", &View::devices);
  return catalog.take();
}

}  // namespace gpuledger::expose
