// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenario.h"

namespace gpuledger::sim {

// A way to cut a GPU instance out of a GPU. The driver has two numbers for each: the index is the same on every GPU,
// the id is what instances carry.
struct MigProfile {
  unsigned index = 0;
  unsigned id = 0;
  unsigned slices = 0;
  unsigned memory_slices = 0;  // of eight
  unsigned instances = 0;      // as many of them fit on a GPU
  unsigned sm_count = 0;
  unsigned copy_engines = 0;
  unsigned decoders = 0;
  unsigned jpeg_engines = 0;
  unsigned optical_flow = 0;
  uint64_t memory_mb = 0;
  std::string name;  // "1g.18gb"
};

inline constexpr unsigned kMemorySlices = 8;

// Empty if the GPU cannot do MIG.
std::vector<MigProfile> mig_profiles(const GpuModel& model);
// The one that an instance was made of: by its name, else by its size.
MigProfile profile_of(const GpuModel& model, const MigSpec& instance);
// What an instance has of the gigabytes in its profile's name.
uint64_t instance_memory_mb(unsigned gigabytes);

// Where in the GPU's memory each instance lies, by its position in GpuSpec::instances. Those that live at the same time
// lie beside each other.
std::vector<unsigned> placements(const GpuSpec& gpu);

// Compute instances of one GPU instance share its slices.
unsigned compute_slices(const GpuSpec& gpu, const MigSpec& instance, Millis now);

inline bool there(const MigSpec& instance, Millis now) {
  return now >= instance.from && now < instance.until;
}

}  // namespace gpuledger::sim
