// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/sample.h"

namespace gpuledger::attribute {

// A process that was on the GPU during a step.
struct Tenant {
  EngineUse use;
  bool mps_client = false;
  bool mps_server = false;
  std::optional<Ratio> mig_activity;  // of its instance
  uint32_t mig_slices = 0;            // of its instance; 0 outside MIG
  double mig_part = 1;                // of its instance: by the time that each process was there
};

// Each tenant's share of the GPU's time, not normalised. All zero: no samples.
// Empty: the driver cannot tell (old GPUs, a failed call).
//  - time slicing: the driver's SM utilization; if no tenant used the SMs, its busiest other engine
//  - MPS: every sample names the server; its time is divided equally among its clients
//  - MIG: there is no utilization; the compute slices of the instance, times its activity where known
std::optional<std::vector<double>> gpu_time_shares(UtilizationState utilization, std::span<const Tenant> tenants);

}  // namespace gpuledger::attribute
