// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "expose/collectors/collectors.h"
#include "expose/words.h"

// The GPUs' books, what they are and what Kubernetes did with them. How they are doing is in health.cc.
namespace gpuledger::expose {
namespace {

// A label whose value is one of our own words.
std::string label(std::string_view name, std::string_view value) {
  return std::string(name).append("=\"").append(value).append("\"");
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
      .add("energy_source", energy_source_name(description.energy_source));
  if (description.accounting_enabled) {
    labels.add("accounting_mode", *description.accounting_enabled ? "enabled" : "disabled");
  }
  samples.add_as(labels.take(), uint64_t{1});
}

constexpr Row<DeviceSeries> kRows[] = {
    {"gpu_ledger_device_info", kGauge, "model pci_bus_id driver mig_mode energy_source accounting_mode",
     "A GPU, always 1. mig_mode is enabled, disabled or unsupported, and absent where DCGM alone is asked and says "
     "that it is off; energy_source is counter or power_integral.",
     [](const DeviceSeries& device, Samples& samples) { add_info(device, samples); }},
    {"gpu_ledger_device_up", kGauge, "", "1 while the GPU answers, 0 while it is lost.",
     [](const DeviceSeries& device) { return device.account->up; }, "up"},
    {"gpu_ledger_device_energy_joules_total", kCounter, "",
     "Energy the GPU used since the ledger began. Equals the owners' counters of this GPU plus the closed accounts "
     "plus the unattributed energy.",
     [](const DeviceSeries& device) { return device.account->measured; }, "energy_joules"},
    {"gpu_ledger_device_unattributed_joules_total", kCounter, "reason",
     "Energy that belongs to no process: idle (nobody held the GPU), static (idle watts under --static-"
     "power=separate), unseen (the driver named nobody to charge), exporter_down (spent while nobody "
     "looked), anomaly (more than the GPU can draw).",
     [](const DeviceSeries& device, Samples& samples) {
       for (size_t i = 0; i < kReasonCount; ++i) {
         samples.add(device.account->unattributed[i], label("reason", reason_name(static_cast<Reason>(i))));
       }
     }},
    {"gpu_ledger_device_power_watts", kGauge, "", "Power the GPU draws.",
     [](const DeviceSeries& device) { return device.reading().power; }, "power_watts"},
    {"gpu_ledger_device_idle_power_watts", kGauge, "",
     "Power the GPU draws when nobody uses it, learned or given by --gpu-idle-power. Absent until it is known.",
     [](const DeviceSeries& device) { return device.up() ? device.account->idle_power : std::nullopt; },
     "idle_power_watts"},
    {"gpu_ledger_xid_errors_total", kCounter, "xid", "Xid errors the driver reported.",
     [](const DeviceSeries& device, Samples& samples) {
       for (const auto& [xid, count] : device.account->xids) samples.add(count, label("xid", std::to_string(xid)));
     }},
    {"gpu_ledger_xid_last_seen_timestamp_seconds", kGauge, "xid",
     "When the driver last reported this Xid error, in seconds since 1970.",
     [](const DeviceSeries& device, Samples& samples) {
       for (const auto& [xid, seen] : device.account->xid_seen) {
         // To the millisecond: what is below tells apart Xids of one moment and nothing else.
         samples.add(Thousandths{seen.count() / 1'000'000}, label("xid", std::to_string(xid)));
       }
     }},
};

constexpr Row<View> kCountRows[] = {
    {"gpu_ledger_gpus_expected", kGauge, "",
     "GPUs the driver found at its start (/proc/driver/nvidia/gpus). Absent where that cannot be seen, with "
     "--gpu-devices, and in a container that NVIDIA_VISIBLE_DEVICES gives some of them.",
     [](const View& view) { return view.cycle.gpus_expected; }},
    {"gpu_ledger_gpus_missing", kGauge, "",
     "GPUs that --gpu-devices names and that are not there. Absent without --gpu-devices.",
     [](const View& view) {
       const auto& missing = view.cycle.batch.missing_gpus;
       return missing ? std::optional<uint64_t>(missing->size()) : std::nullopt;
     }},
    {"gpu_ledger_gpus_visible", kGauge, "", "GPUs that answer.",
     [](const View& view) {
       uint64_t answering = 0;
       for (const DeviceSeries& device : view.devices) answering += device.account->up ? 1 : 0;
       return answering;
     }},
};

constexpr Row<AllocationSeries> kAllocationRows[] = {
    {"gpu_ledger_allocation_info", kGauge, "resource replica",
     "A GPU, MIG instance or replica that Kubernetes gave to a container, always 1. Being given is not using.",
     [](const AllocationSeries& series, Samples& samples) {
       LabelText labels = place_labels(samples.view(), series.account->allocation);
       labels.add("resource", series.account->allocation.resource);
       if (series.account->allocation.replica) labels.add("replica", *series.account->allocation.replica);
       samples.add_as(labels.take(), uint64_t{1});
     }},
    {"gpu_ledger_allocation_idle_seconds", kGauge, "",
     "Time since the container last worked on the GPU it was given, 0 while it works. Absent where the GPU cannot "
     "say who works.",
     [](const AllocationSeries& series) { return series.first_of_place ? series.account->idle_for : std::nullopt; }},
};

constexpr Row<View> kAllocatableRows[] = {
    {"gpu_ledger_allocatable_devices", kGauge, "",
     "GPUs, MIG instances and replicas that the kubelet can give to pods, given or not. Absent where it cannot say.",
     [](const View& view) { return view.cycle.identities->allocatable; }},
};

// Empty: nobody asked for exact time, or the GPU is down.
template <typename Get>
auto exact(const DeviceSeries& device, Get get) -> std::optional<decltype(get(*device.sample->exact_time))> {
  if (!device.reading().exact_time) return std::nullopt;
  return get(*device.reading().exact_time);
}

constexpr Row<DeviceSeries> kExactTimeRows[] = {
    {"gpu_ledger_exact_time", kGauge, "",
     "1 while the driver's trace of context switches is read and trusted, 0 while it is not and time is split by "
     "samples. Only with --exact-time.",
     [](const DeviceSeries& device) { return exact(device, [](const ExactTime& time) { return time.trusted; }); }},
    {"gpu_ledger_gpu_seconds_source", kGauge, "source",
     "What tells at present how long each process worked on the GPU, always 1: trace (exact, by the driver's "
     "context-switch trace) or samples (estimated, by the driver's samples). Absent while nobody is there or nothing "
     "tells.",
     [](const DeviceSeries& device, Samples& samples) {
       const GpuTimeSource source = device.account->gpu_time_source;
       if (!device.up() || source == GpuTimeSource::kNone) return;
       samples.add(uint64_t{1}, label("source", gpu_time_source_name(source)));
     }},
    {"gpu_ledger_device_switches_total", kCounter, "",
     "How often a process was given the GPU, since the program started. Only with --exact-time.",
     [](const DeviceSeries& device) { return exact(device, [](const ExactTime& time) { return time.switches; }); }},
    {"gpu_ledger_device_switch_seconds_total", kCounter, "",
     "Time the GPU spent between two processes: it belongs to nobody. Only with --exact-time.",
     [](const DeviceSeries& device) { return exact(device, [](const ExactTime& time) { return time.switching; }); }},
    {"gpu_ledger_exact_time_lost_records_total", kCounter, "",
     "Records of the trace that were lost; the time they would have told of is split by samples. Only with "
     "--exact-time.",
     [](const DeviceSeries& device) { return exact(device, [](const ExactTime& time) { return time.records_lost; }); }},
};

}  // namespace

std::span<const Row<DeviceSeries>> device_rows() {
  return kRows;
}

std::span<const Row<AllocationSeries>> allocation_rows() {
  return kAllocationRows;
}

std::vector<Family> device_families() {
  CatalogBuilder catalog("device");
  catalog.add(device_rows(), "gpu uuid", &View::devices);
  catalog.add(health_rows(), "gpu uuid", &View::devices);
  catalog.add_of_node(kCountRows);
  catalog.add(allocation_rows(), "gpu uuid mig_uuid namespace pod container", &View::allocations);
  catalog.add_of_node(kAllocatableRows);
  catalog.add(rows_of(kExactTimeRows), "gpu uuid", &View::devices);
  return catalog.take();
}

}  // namespace gpuledger::expose
