// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "expose/collectors/dcgm.h"
#include "expose/dcgm_seats.h"
#include "expose/expose.h"
#include "expose/text_writer.h"

// /gpu/metrics: the device view under the names of DCGM's exporters.
namespace gpuledger::expose {
namespace {

const ConstantLabels kNone;

// In alphabetical order, as in the older exporter.
std::string legacy_labels(const View& view, const DeviceSeries& device, const PodPlace& pod) {
  const DeviceDescription& description = *device.account->description;
  return LabelText(kNone)
      .add("container_name", pod.container)
      .add("gpu", description.index)
      .add("node", view.options.node)
      .add("pod_name", pod.pod)
      .add("pod_namespace", pod.name_space)
      .add("uuid", description.uuid.text)
      .take();
}

std::string modern_labels(const View& view, const DeviceSeries& device, const MigInstance* instance,
                          const PodPlace& pod) {
  const DeviceDescription& description = *device.account->description;
  LabelText labels(kNone);
  labels.add("gpu", description.index)
      .add("UUID", description.uuid.text)
      .add("pci_bus_id", description.pci_bus_id)
      .add("device", "nvidia" + std::to_string(description.index))
      .add("modelName", description.model);
  if (instance) labels.add("GPU_I_PROFILE", instance->profile).add("GPU_I_ID", instance->id.gpu_instance);
  return labels.add("Hostname", view.options.host_name)
      .add("DCGM_FI_DRIVER_VERSION", description.driver)
      .add("container", pod.container)
      .add("namespace", pod.name_space)
      .add("pod", pod.pod)
      .take();
}

struct SeatLine {
  Seat seat;
  std::string labels;
};
struct EnergyLine {
  Thousandths millijoules;
  std::string labels;
};

void write_family(const DcgmFamily& family, const std::vector<SeatLine>& seats, const std::vector<EnergyLine>& energy,
                  FamilySink& out) {
  out.begin_family({std::string(family.name), family.type, {}, family.help});
  if (family.read == nullptr) {
    for (const EnergyLine& line : energy) out.add(line.labels, line.millijoules);
    return;
  }
  for (const SeatLine& line : seats) {
    if (line.seat.rest && !family.adds_up) continue;
    const auto value = family.read(line.seat);
    if (value) out.add(line.labels, *value);
  }
}

// Per GPU, so that all families of all GPUs are within --max-series. 0: no limit.
size_t most_seats_of(const View& view) {
  if (view.options.max_series == 0) return 0;
  size_t families = 0;
  if (view.options.collectors.contains("dcgm")) families += legacy_families().size();
  if (view.options.collectors.contains("dcgm-modern")) families += modern_families().size();
  return std::max<size_t>(2, view.options.max_series / (std::max<size_t>(1, view.devices.size()) * families));
}

void write_families(const View& view, bool modern, FamilySink& out) {
  const size_t most_seats = most_seats_of(view);
  std::vector<SeatLine> seats;
  std::vector<EnergyLine> energy;
  const auto labels_of = [&](const auto& one) {
    return modern ? modern_labels(view, *one.device, one.instance, one.pod) : legacy_labels(view, *one.device, one.pod);
  };
  for (const DeviceSeries& device : view.devices) {
    Seating seating = seat_pods(view, device, modern);
    if (most_seats > 0) keep_biggest(seating, most_seats);
    for (const Seat& seat : seating.seats) seats.push_back({seat, labels_of(seat)});
    for (const EnergyPart& part : seating.energy)
      energy.push_back({Thousandths{part.energy.microjoules()}, labels_of(part)});
  }
  for (const DcgmFamily& family : modern ? modern_families() : legacy_families()) {
    write_family(family, seats, energy, out);
  }
}

std::string write_dcgm(const Cycle& cycle, const ExposeOptions& options, Format format) {
  const bool legacy = options.collectors.contains("dcgm");
  const bool modern = options.collectors.contains("dcgm-modern");
  if (!legacy && !modern) return {};
  const View view = View::of_devices(cycle, options);
  constexpr size_t kBytesPerGpu = 32 * 1024;
  TextWriter out(format, kBytesPerGpu * (1 + view.devices.size()));
  if (modern) write_families(view, true, out);
  if (legacy) write_families(view, false, out);
  return out.take();
}

}  // namespace

std::string write_gpu_text(const Cycle& cycle, const ExposeOptions& options) {
  return write_dcgm(cycle, options, Format::kText);
}

std::string write_gpu_openmetrics(const Cycle& cycle, const ExposeOptions& options) {
  return write_dcgm(cycle, options, Format::kOpenMetrics);
}

}  // namespace gpuledger::expose
