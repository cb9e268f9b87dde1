// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sample/nvml/nvml_abi.h"

// Declarations of the part of NVML that other clients call and the product does not (yet): what they need
// to read the simulated driver. Same rules as nvml_abi.h.
namespace gpuledger::nvml {

extern "C" {

struct GpuInstanceHandle;
using GpuInstance = GpuInstanceHandle*;

struct BAR1Memory {
  unsigned long long bar1Total, bar1Free, bar1Used;
};
static_assert(sizeof(BAR1Memory) == 24);

struct Temperature_v1 {
  unsigned version;
  unsigned sensorType;
  int temperature;
};
static_assert(sizeof(Temperature_v1) == 12);

struct ProcessDetail {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId;
  unsigned computeInstanceId;
  unsigned long long usedGpuCcProtectedMemory;
};
static_assert(sizeof(ProcessDetail) == 32 && offsetof(ProcessDetail, usedGpuCcProtectedMemory) == 24);

struct ProcessDetailList {
  unsigned version;
  unsigned mode;
  unsigned numProcArrayEntries;
  ProcessDetail* procArray;
};
static_assert(sizeof(ProcessDetailList) == 24 && offsetof(ProcessDetailList, procArray) == 16);

struct AccountingStats_v2 {
  unsigned pid;
  unsigned isRunning;
  unsigned gpuUtilization;
  unsigned memoryUtilization;
  unsigned long long maxMemoryUsage;
  unsigned sampleCount;
  unsigned long long sumGpuUtil;
  unsigned long long sumFbUtil;
  unsigned long long time;
  unsigned long long startTime;
};
static_assert(sizeof(AccountingStats_v2) == 64 && offsetof(AccountingStats_v2, sampleCount) == 24 &&
              offsetof(AccountingStats_v2, sumGpuUtil) == 32 && offsetof(AccountingStats_v2, startTime) == 56);

struct GpuInstanceFacts {
  Device device;
  unsigned id;
  unsigned profileId;
  unsigned placementStart;
  unsigned placementSize;
};
static_assert(sizeof(GpuInstanceFacts) == 24);

}  // extern "C"

}  // namespace gpuledger::nvml
