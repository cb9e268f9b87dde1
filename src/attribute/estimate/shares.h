// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/sample.h"

namespace gpuledger::attribute {

// A process that was on the GPU during a step, as the sharing rules see it.
struct Tenant {
  EngineUse use;
  bool mps_client = false;
  bool mps_server = false;
  std::optional<Ratio> mig_activity;  // how busy its instance was
  uint32_t mig_slices = 0;            // of its instance; 0 outside MIG
  uint32_t mig_tenants = 1;           // processes in its instance
};

// How much of the GPU's time each tenant had; not normalised. All zero: nobody was caught working.
// Empty: the GPU cannot say (old GPUs, a failed call).
//  - time slicing: the driver's SM utilisation; if no tenant used the SMs, its busiest other engine
//  - MPS: every sample names the server, which works for its clients alone: they share it equally
//  - MIG: no utilisation exists, so an instance counts with its compute slices, times its activity where known
std::optional<std::vector<double>> gpu_time_shares(UtilizationState utilization, std::span<const Tenant> tenants);

}  // namespace gpuledger::attribute
