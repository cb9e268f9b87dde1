// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenario.h"

namespace gpuledger::sim {

// A profile of GPU instances. The driver has two numbers for each: the index is the same on every GPU, the id is in the
// instances.
struct MigProfile {
  unsigned index = 0;
  unsigned id = 0;
  unsigned slices = 0;
  unsigned memory_slices = 0;  // of eight
  unsigned instances = 0;      // how many fit on a GPU
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
// The profile of an instance: by its name, else by its size.
MigProfile profile_of(const GpuModel& model, const MigSpec& instance);
// The real memory of an instance; `gigabytes` are the nominal ones in its profile's name.
uint64_t instance_memory_mb(unsigned gigabytes);

// The start of each instance in the GPU's memory, by its position in GpuSpec::instances. GPU instances that exist at
// the same time do not overlap.
std::vector<unsigned> placements(const GpuSpec& gpu);

// Compute instances of one GPU instance share its slices.
unsigned compute_slices(const GpuSpec& gpu, const MigSpec& instance, Millis now);

inline bool there(const MigSpec& instance, Millis now) {
  return now >= instance.from && now < instance.until;
}

}  // namespace gpuledger::sim
