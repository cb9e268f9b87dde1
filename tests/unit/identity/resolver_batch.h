// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <memory>
#include <string>

#include "model/sample.h"

namespace gpuledger::identity {

inline const std::string kGpu = "GPU-11111111-2222-3333-4444-555555555555";

// One GPU with these processes.
inline SampleBatch batch_of(std::initializer_list<Pid> pids, bool scanned = true) {
  SampleBatch batch;
  batch.processes_scanned = scanned;
  DeviceSample device;
  auto description = std::make_shared<DeviceDescription>();
  description->uuid.text = kGpu;
  device.description = description;
  device.up = true;
  for (Pid pid : pids) {
    ProcessSample process;
    process.pid = pid;
    device.processes.push_back(process);
  }
  batch.devices.push_back(device);
  return batch;
}

}  // namespace gpuledger::identity
