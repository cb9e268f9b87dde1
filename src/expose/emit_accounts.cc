#include <cmath>
#include <string>

#include "expose/emit.h"
#include "expose/numbers.h"
#include "expose/words.h"

namespace gpuledger::expose {
namespace {

void add_owner_energy(const View& view, TextWriter& out, OwnerKind kind) {
  for (const auto& series : view.owners) {
    if (series.kind == kind) add_booked_energy(out, series.labels, series.booked);
  }
}

void add_owner_energy_error(const View& view, TextWriter& out, OwnerKind kind) {
  for (const auto& series : view.owners) {
    if (series.kind != kind || !(series.booked.shared > Energy())) continue;
    out.add(series.labels, whole_microjoules(std::sqrt(series.variance)));
  }
}

void add_owner_gpu_seconds(const View& view, TextWriter& out, OwnerKind kind) {
  for (const auto& series : view.owners) {
    if (series.kind == kind && series.booked.gpu_time) out.add(series.labels, *series.booked.gpu_time);
  }
}

std::string closed_labels(const View& view, const ClosedKey& key) {
  return view.labels()
      .add("kind", owner_kind_name(key.kind))
      .add("namespace", key.name_space)
      .add("gpu", key.gpu_index)
      .take();
}

}  // namespace

void emit_device_info(const View& view, TextWriter& out) {
  for (const auto& device : view.devices) {
    const DeviceDescription& description = *device.account->description;
    LabelText labels = view.labels();
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
    out.add(labels.take(), uint64_t{1});
  }
}

void emit_device_up(const View& view, TextWriter& out) {
  for (const auto& device : view.devices) out.add(device.labels, uint64_t{device.account->up});
}

void emit_device_energy(const View& view, TextWriter& out) {
  for (const auto& device : view.devices) out.add(device.labels, device.account->measured);
}

void emit_device_unattributed(const View& view, TextWriter& out) {
  for (const auto& device : view.devices) {
    for (size_t i = 0; i < kReasonCount; ++i) {
      const auto label = std::string("reason=\"").append(reason_name(static_cast<Reason>(i))).append("\"");
      out.add(device.labels, device.account->unattributed[i], label);
    }
  }
}

void emit_device_power(const View& view, TextWriter& out) {
  for (const auto& device : view.devices) {
    if (device.sample != nullptr && device.sample->power) out.add(device.labels, *device.sample->power);
  }
}

void emit_device_idle_power(const View& view, TextWriter& out) {
  for (const auto& device : view.devices) {
    if (device.sample != nullptr && device.account->idle_power) out.add(device.labels, *device.account->idle_power);
  }
}

void emit_device_xids(const View& view, TextWriter& out) {
  for (const auto& device : view.devices) {
    for (const auto& [xid, count] : device.account->xids) {
      out.add(device.labels, count, "xid=\"" + std::to_string(xid) + "\"");
    }
  }
}

void emit_pod_energy(const View& view, TextWriter& out) {
  add_owner_energy(view, out, OwnerKind::kPod);
}

void emit_pod_energy_error(const View& view, TextWriter& out) {
  add_owner_energy_error(view, out, OwnerKind::kPod);
}

void emit_pod_gpu_seconds(const View& view, TextWriter& out) {
  add_owner_gpu_seconds(view, out, OwnerKind::kPod);
}

void emit_pod_idle_memory(const View& view, TextWriter& out) {
  for (const auto& series : view.owners) {
    if (series.kind == OwnerKind::kPod && series.idle_memory) out.add(series.labels, *series.idle_memory);
  }
}

void emit_slurm_energy(const View& view, TextWriter& out) {
  add_owner_energy(view, out, OwnerKind::kSlurmJob);
}

void emit_slurm_energy_error(const View& view, TextWriter& out) {
  add_owner_energy_error(view, out, OwnerKind::kSlurmJob);
}

void emit_slurm_gpu_seconds(const View& view, TextWriter& out) {
  add_owner_gpu_seconds(view, out, OwnerKind::kSlurmJob);
}

void emit_container_energy(const View& view, TextWriter& out) {
  add_owner_energy(view, out, OwnerKind::kContainer);
}

void emit_container_energy_error(const View& view, TextWriter& out) {
  add_owner_energy_error(view, out, OwnerKind::kContainer);
}

void emit_container_gpu_seconds(const View& view, TextWriter& out) {
  add_owner_gpu_seconds(view, out, OwnerKind::kContainer);
}

void emit_host_energy(const View& view, TextWriter& out) {
  add_owner_energy(view, out, OwnerKind::kHost);
}

void emit_host_energy_error(const View& view, TextWriter& out) {
  add_owner_energy_error(view, out, OwnerKind::kHost);
}

void emit_host_gpu_seconds(const View& view, TextWriter& out) {
  add_owner_gpu_seconds(view, out, OwnerKind::kHost);
}

void emit_unknown_energy(const View& view, TextWriter& out) {
  add_owner_energy(view, out, OwnerKind::kUnknown);
}

void emit_unknown_energy_error(const View& view, TextWriter& out) {
  add_owner_energy_error(view, out, OwnerKind::kUnknown);
}

void emit_unknown_gpu_seconds(const View& view, TextWriter& out) {
  add_owner_gpu_seconds(view, out, OwnerKind::kUnknown);
}

void emit_closed_energy(const View& view, TextWriter& out) {
  for (const auto& [key, booked] : view.closed) add_booked_energy(out, closed_labels(view, key), booked);
}

void emit_closed_gpu_seconds(const View& view, TextWriter& out) {
  for (const auto& [key, booked] : view.closed) {
    if (booked.gpu_time) out.add(closed_labels(view, key), *booked.gpu_time);
  }
}

}  // namespace gpuledger::expose
