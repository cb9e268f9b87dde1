// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sample/nvml/nvml_abi.h"

// Declarations of the part of NVML that other clients call and the product does not. They need it to read the simulated
// driver. Same rules as nvml_abi.h.
namespace gpuledger::nvml {

extern "C" {

struct GpuInstanceHandle;
struct ComputeInstanceHandle;
using GpuInstance = GpuInstanceHandle*;
using ComputeInstance = ComputeInstanceHandle*;

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

struct InstancePlacement {
  unsigned start;
  unsigned size;
};
static_assert(sizeof(InstancePlacement) == 8);

struct GpuInstanceInfo {
  Device device;
  unsigned id;
  unsigned profileId;
  InstancePlacement placement;
};
static_assert(sizeof(GpuInstanceInfo) == 24 && offsetof(GpuInstanceInfo, placement) == 16);

struct ComputeInstanceInfo {
  Device device;
  GpuInstance gpuInstance;
  unsigned id;
  unsigned profileId;
  InstancePlacement placement;
};
static_assert(sizeof(ComputeInstanceInfo) == 32 && offsetof(ComputeInstanceInfo, placement) == 24);

struct GpuInstanceProfileInfo {
  unsigned id;
  unsigned isP2pSupported;
  unsigned sliceCount;
  unsigned instanceCount;
  unsigned multiprocessorCount;
  unsigned copyEngineCount;
  unsigned decoderCount;
  unsigned encoderCount;
  unsigned jpegCount;
  unsigned ofaCount;
  unsigned long long memorySizeMB;
};
static_assert(sizeof(GpuInstanceProfileInfo) == 48 && offsetof(GpuInstanceProfileInfo, memorySizeMB) == 40);

struct GpuInstanceProfileInfo_v2 {
  unsigned version;
  unsigned id;
  unsigned isP2pSupported;
  unsigned sliceCount;
  unsigned instanceCount;
  unsigned multiprocessorCount;
  unsigned copyEngineCount;
  unsigned decoderCount;
  unsigned encoderCount;
  unsigned jpegCount;
  unsigned ofaCount;
  unsigned long long memorySizeMB;
  char name[kNameBufferSize];
};
static_assert(sizeof(GpuInstanceProfileInfo_v2) == 152 && offsetof(GpuInstanceProfileInfo_v2, name) == 56);
inline constexpr unsigned kGpuInstanceProfileInfoVersion2 = struct_version(sizeof(GpuInstanceProfileInfo_v2), 2);

// The flag for P2P became a bit of the capabilities.
struct GpuInstanceProfileInfo_v3 {
  unsigned version;
  unsigned id;
  unsigned sliceCount;
  unsigned instanceCount;
  unsigned multiprocessorCount;
  unsigned copyEngineCount;
  unsigned decoderCount;
  unsigned encoderCount;
  unsigned jpegCount;
  unsigned ofaCount;
  unsigned long long memorySizeMB;
  char name[kNameBufferSize];
  unsigned capabilities;
};
static_assert(sizeof(GpuInstanceProfileInfo_v3) == 152 && offsetof(GpuInstanceProfileInfo_v3, name) == 48 &&
              offsetof(GpuInstanceProfileInfo_v3, capabilities) == 144);
inline constexpr unsigned kGpuInstanceProfileInfoVersion3 = struct_version(sizeof(GpuInstanceProfileInfo_v3), 3);

struct ComputeInstanceProfileInfo {
  unsigned id;
  unsigned sliceCount;
  unsigned instanceCount;
  unsigned multiprocessorCount;
  unsigned sharedCopyEngineCount;
  unsigned sharedDecoderCount;
  unsigned sharedEncoderCount;
  unsigned sharedJpegCount;
  unsigned sharedOfaCount;
};
static_assert(sizeof(ComputeInstanceProfileInfo) == 36);

struct ComputeInstanceProfileInfo_v2 {
  unsigned version;
  ComputeInstanceProfileInfo info;
  char name[kNameBufferSize];
};
static_assert(sizeof(ComputeInstanceProfileInfo_v2) == 136 && offsetof(ComputeInstanceProfileInfo_v2, name) == 40);
inline constexpr unsigned kComputeInstanceProfileInfoVersion2 =
    struct_version(sizeof(ComputeInstanceProfileInfo_v2), 2);

// How many profiles there are numbers for; what an R580 driver answers.
inline constexpr unsigned kGpuInstanceProfiles = 17;
inline constexpr unsigned kComputeInstanceProfiles = 9;

struct GpuFabricInfo {
  unsigned char clusterUuid[16];
  Return status;
  unsigned cliqueId;
  unsigned char state;
};
static_assert(sizeof(GpuFabricInfo) == 28);

// Version 2 ends with the mask.
struct GpuFabricInfo_v3 {
  unsigned version;
  GpuFabricInfo info;
  unsigned healthMask;
  unsigned char healthSummary;
};
static_assert(sizeof(GpuFabricInfo_v3) == 40 && offsetof(GpuFabricInfo_v3, healthSummary) == 36);
inline constexpr unsigned kGpuFabricInfoVersion2 = struct_version(36, 2);
inline constexpr unsigned kGpuFabricInfoVersion3 = struct_version(sizeof(GpuFabricInfo_v3), 3);

inline constexpr unsigned long long kEventTypeMigChange = 0x100;

enum MemoryLocation : unsigned { kLocationDeviceMemory = 2, kLocationSram = 7, kMemoryLocations = 8 };
enum TopologyLevel : unsigned { kTopologyNode = 40, kTopologySystem = 50 };
enum FabricState : unsigned char { kFabricNotSupported = 0, kFabricCompleted = 3 };

}  // extern "C"

}  // namespace gpuledger::nvml
