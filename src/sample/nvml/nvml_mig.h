// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/sample.h"
#include "sample/nvml/nvml_calls.h"

namespace gpuledger::nvml {

struct MigDevice {
  Device handle = nullptr;
  MigInstance instance;
};

// "1g.18gb", with a leading "1c." if the compute instance is a part of its GPU instance. From the driver's name of the
// instance ("NVIDIA H200 MIG 1g.18gb"); older drivers only give the GPU's name, so then from the attributes. Empty if
// neither has it.
std::string mig_profile(const std::string& name, const std::optional<DeviceAttributes>& attributes,
                        std::optional<Bytes> gpu_memory);

// By GPU instance, then compute instance. Failures are left out and counted.
std::vector<MigDevice> read_mig_devices(Session& session, Device gpu, std::optional<Bytes> gpu_memory);

}  // namespace gpuledger::nvml
