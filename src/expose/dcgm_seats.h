// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "expose/view.h"

namespace gpuledger::expose {

// A container of a pod. Without a pod's name: no pod.
struct PodPlace {
  std::string name_space;
  std::string pod;
  std::string container;
  friend auto operator<=>(const PodPlace&, const PodPlace&) = default;
};

// A GPU, or an instance of one, with one of its pods: a line of every dcgm family. Power and framebuffer used are the
// pod's part, the other readings the whole GPU's or instance's.
struct Seat {
  const DeviceSeries* device = nullptr;
  const MigInstance* instance = nullptr;  // null: the whole GPU
  PodPlace pod;
  bool rest = false;  // the part of no pod: only power and memory have a line for it
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
  std::vector<Seat> seats;         // none while the GPU is lost
  std::vector<EnergyPart> energy;  // parts stay for ever: if they were merged again, counters would fall
};

// The pods on the GPU, by allocations and by processes, with their parts. The parts of all seats add up exactly to the
// device's reading. by_instance: a GPU with MIG has seats for each instance, else the pods of all instances share the
// GPU.
Seating seat_pods(const View& view, const DeviceSeries& device, bool by_instance);

// Keeps the pods with the most power and energy, for --max-series: at least one pod of the GPU and the rest. Power and
// memory of the others are added to the rest, so the sums stay; their energy is left out.
void keep_biggest(Seating& seating, size_t most);

}  // namespace gpuledger::expose
