// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sample/nvml/nvml_calls.h"

namespace gpuledger::nvml {

// Xid errors from the driver. A driver without events never reports any.
class XidEvents {
 public:
  void open(Session& session);
  void watch(Session& session, Device device);
  std::vector<std::pair<Device, uint64_t>> drain(Session& session);
  void close(const FunctionTable& functions);

 private:
  EventSet set_ = nullptr;
  bool watching_ = false;
};

}  // namespace gpuledger::nvml
