// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "expose/view.h"

namespace gpuledger::expose {

// A container of a pod. Without a pod's name: nobody.
struct PodPlace {
  std::string name_space;
  std::string pod;
  std::string container;
  friend auto operator<=>(const PodPlace&, const PodPlace&) = default;
};

// A GPU, or an instance of one, as one pod on it sees it: a line of every dcgm family. Readings that add up (power,
// framebuffer used) are the pod's part, the others the whole GPU's or instance's.
struct Seat {
  const DeviceSeries* device = nullptr;
  const MigInstance* instance = nullptr;  // null: the whole GPU
  PodPlace pod;
  bool rest = false;  // what belongs to no pod: only readings that add up have a line for it
  std::optional<Power> power;
  std::optional<uint64_t> memory_used_mib;
};

struct EnergyPart {
  const DeviceSeries* device = nullptr;
  const MigInstance* instance = nullptr;
  PodPlace pod;
  Energy energy;
};

struct Seating {
  std::vector<Seat> seats;         // none while the GPU is down
  std::vector<EnergyPart> energy;  // these never leave: a counter that is split and then whole again would fall
};

// Which pods are on the GPU, by what Kubernetes gave and by who works there, and what part is whose. The parts of all
// seats add up to the device's reading exactly. by_instance: a GPU that is cut into instances has seats for each of
// them, else its instances' pods share it.
Seating seat_pods(const View& view, const DeviceSeries& device, bool by_instance);

// Keeps the biggest spenders, for --max-series: at least one pod of the GPU and what nobody has. Readings that add up
// go on adding up, because the others' parts are added to what nobody has; their energy is absent.
void keep_biggest(Seating& seating, size_t most);

}  // namespace gpuledger::expose
