// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>
#include <vector>

#include "attribute/books/engine.h"
#include "model/snapshot.h"

namespace gpuledger::bench {

// A node whose GPUs are shared by many processes, each in a pod of its own that was given a replica of the GPU, that
// come one after another.
class CrowdedNode {
 public:
  CrowdedNode(uint32_t gpus, uint32_t processes_per_gpu);

  // Everybody has come, and the ledger knows what each of them costs: the most work that it can have with them.
  static CrowdedNode settled(uint32_t gpus, uint32_t processes_per_gpu, attribute::Engine& engine);

  // One second later. Valid until the next call.
  const SampleBatch& next();
  const IdentityMap& identities() const { return identities_; }
  bool everybody_is_there() const { return present_ == processes_per_gpu_; }

  // The cycle as the exposition gets it.
  Cycle cycle(attribute::Engine& engine);

 private:
  Pid pid_of(uint32_t gpu, uint32_t place) const { return 1000 + gpu * processes_per_gpu_ + place; }
  attribute::EngineState what_each_costs() const;
  void admit();
  void put_in_order();
  void sample(DeviceSample& device);
  double fraction() { return static_cast<double>(random_() >> 11) / 9007199254740992.0; }

  uint32_t processes_per_gpu_;
  uint32_t present_ = 0;
  uint64_t seconds_ = 0;
  SampleBatch batch_;
  IdentityMap identities_;
  std::shared_ptr<const IdentityMap> shared_identities_;  // as the resolver hands them on: until somebody comes
  std::mt19937_64 random_{1};
};

// What the program holds of the heap.
size_t allocated_bytes();

// CPU seconds of this thread: on a busy machine the wall clock says little.
double cpu_seconds();

}  // namespace gpuledger::bench
