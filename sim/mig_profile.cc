// SPDX-License-Identifier: Apache-2.0
#include "mig_profile.h"

#include <algorithm>
#include <cmath>

namespace gpuledger::sim {
namespace {

constexpr unsigned kAmpere = 7;
constexpr unsigned kHopperSms = 132;

// Engines in the order of MigProfile.
struct Engines {
  unsigned sm, copy, decode, jpeg, optical_flow;
};

// Hopper's are what an H200 answers, Ampere's those of NVIDIA's table of profiles. Newer GPUs have Hopper's, with
// multiprocessors in proportion.
struct Shape {
  unsigned index, id, slices, memory_slices, instances;
  const char* suffix;
  Engines ampere, hopper;
};
constexpr Shape kShapes[] = {
    {0, 19, 1, 1, 7, "", {14, 1, 0, 0, 0}, {16, 1, 1, 1, 0}},
    {1, 14, 2, 2, 3, "", {28, 2, 1, 0, 0}, {32, 2, 2, 2, 0}},
    {2, 9, 3, 4, 2, "", {42, 3, 2, 0, 0}, {60, 3, 3, 3, 0}},
    {3, 5, 4, 4, 1, "", {56, 4, 2, 0, 0}, {64, 4, 4, 4, 0}},
    {4, 0, 7, 8, 1, "", {98, 7, 5, 1, 1}, {132, 8, 7, 7, 1}},
    {7, 20, 1, 1, 1, "+me", {14, 1, 1, 1, 1}, {16, 1, 1, 1, 1}},
    {9, 15, 1, 2, 4, "", {14, 1, 1, 0, 0}, {26, 1, 1, 1, 0}},
};

// Profile names have whole gigabytes of the board's nominal memory.
unsigned gigabytes_of(const GpuModel& model, unsigned memory_slices) {
  const double board = std::ceil(static_cast<double>(model.memory_mib) / 1024);
  return static_cast<unsigned>(std::lround(board * memory_slices / kMemorySlices));
}

MigProfile make_profile(const GpuModel& model, const Shape& shape) {
  const Engines& engines = model.architecture <= kAmpere ? shape.ampere : shape.hopper;
  const unsigned gigabytes = gigabytes_of(model, shape.memory_slices);
  MigProfile profile;
  profile.index = shape.index;
  profile.id = shape.id;
  profile.slices = shape.slices;
  profile.memory_slices = shape.memory_slices;
  profile.instances = shape.instances;
  profile.sm_count = model.architecture <= kAmpere ? engines.sm : engines.sm * model.sm_count / kHopperSms;
  profile.copy_engines = engines.copy;
  profile.decoders = engines.decode;
  profile.jpeg_engines = engines.jpeg;
  profile.optical_flow = engines.optical_flow;
  profile.memory_mb = instance_memory_mb(gigabytes);
  profile.name = std::to_string(shape.slices) + "g." + std::to_string(gigabytes) + "gb" + shape.suffix;
  return profile;
}

bool together(const MigSpec& a, const MigSpec& b) {
  return a.from < b.until && b.from < a.until;
}

}  // namespace

std::vector<MigProfile> mig_profiles(const GpuModel& model) {
  std::vector<MigProfile> profiles;
  if (model.mig_slices == 0) return profiles;
  for (const Shape& shape : kShapes) profiles.push_back(make_profile(model, shape));
  return profiles;
}

MigProfile profile_of(const GpuModel& model, const MigSpec& instance) {
  const std::vector<MigProfile> profiles = mig_profiles(model);
  for (const MigProfile& profile : profiles) {
    if (profile.name == instance.profile) return profile;
  }
  for (const MigProfile& profile : profiles) {
    if (profile.slices >= instance.slices) return profile;
  }
  return {};
}

uint64_t instance_memory_mb(unsigned gigabytes) {
  return static_cast<uint64_t>(gigabytes * 1024 * 0.994);
}

std::vector<unsigned> placements(const GpuSpec& gpu) {
  std::vector<unsigned> starts(gpu.instances.size(), 0), sizes(gpu.instances.size(), 0);
  for (size_t i = 0; i < gpu.instances.size(); ++i) {
    const MigSpec& instance = gpu.instances[i];
    sizes[i] = std::max(1u, profile_of(gpu.model, instance).memory_slices);
    bool free = false;
    for (unsigned start = 0; start + sizes[i] <= kMemorySlices && !free; start += sizes[i]) {
      free = true;
      starts[i] = start;
      for (size_t other = 0; other < i && free; ++other) {
        if (!together(gpu.instances[other], instance)) continue;
        if (gpu.instances[other].gpu_instance == instance.gpu_instance) {
          starts[i] = starts[other];  // another compute instance of the same GPU instance
          break;
        }
        free = starts[other] + sizes[other] <= start || start + sizes[i] <= starts[other];
      }
    }
  }
  return starts;
}

unsigned compute_slices(const GpuSpec& gpu, const MigSpec& instance, Millis now) {
  unsigned sharing = 0;
  for (const MigSpec& other : gpu.instances) {
    if (other.gpu_instance == instance.gpu_instance && there(other, now)) ++sharing;
  }
  return std::max(1u, instance.slices / std::max(1u, sharing));
}

}  // namespace gpuledger::sim
