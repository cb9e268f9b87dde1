// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "model/sample.h"
#include "sample/nvml/nvml_calls.h"

namespace gpuledger::nvml {

// How busy the parts of one GPU, or of each of its MIG instances, were between two reads: the GPU's performance
// monitors (GPM) of Hopper and newer. The driver compares two samples that the caller keeps.
class GpmReader {
 public:
  // Fills activity or instance_activity from the second read on. instances: the GPU's instances while MIG is on.
  // Returns kGpuIsLost and the like if the GPU reported it, else kSuccess.
  Return read(Session& session, Device device, const std::vector<MigInstance>& instances, DeviceSample& out);

  // Whether the GPU has monitors, as far as known.
  bool works() const { return supported_.value_or(false); }

  // Frees the samples and resets what the GPU supports. The library must still be loaded.
  void close(const FunctionTable& functions);

 private:
  // The older sample stays until a newer one is far enough from it.
  struct Pair {
    GpmSample older = nullptr;
    GpmSample newer = nullptr;
    std::optional<Nanoseconds> older_at;  // steady; empty: not taken yet
    bool unsupported = false;
  };

  bool supported(Session& session, Device device);
  bool allocate(Session& session, Pair& pair);
  Return read_scope(Session& session, Device device, uint32_t scope, std::optional<Activity>& out);
  void release(const FunctionTable& functions, Pair& pair);
  void drop_gone_instances(const FunctionTable& functions, const std::vector<MigInstance>& instances);

  std::optional<bool> supported_;
  std::map<uint32_t, Pair> pairs_;  // by GPU instance; kNoInstance: the whole GPU
};

}  // namespace gpuledger::nvml
