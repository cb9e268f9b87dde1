// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/sample.h"

namespace gpuledger::identity {

// A device that the kubelet gave to a container, as it reports it.
struct DeviceGrant {
  std::string name_space;
  std::string pod;
  std::string container;
  std::string resource;   // "nvidia.com/gpu", "nvidia.com/mig-1g.18gb.shared"; for a DRA claim its driver's name
  std::string device_id;  // "GPU-...::3", "MIG-...", "nvidia0/gi2"; for a DRA claim its device's name, "gpu-0"
};

// All grants of GPUs at one moment. Immutable once made. Other resources are left out.
struct GrantView {
  std::vector<DeviceGrant> grants;
  std::vector<std::string> allocatable;  // allocatable device ids; empty if the kubelet lists none
};

// Same threading rules as PodSource.
class AllocationSource {
 public:
  virtual ~AllocationSource() = default;
  virtual std::shared_ptr<const GrantView> view() const = 0;  // null until the first answer
  virtual SourceHealth health() const = 0;
  virtual void look_again() {}
};

}  // namespace gpuledger::identity
