// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// Our own declarations of the NVML calls we use (x86-64 and arm64 Linux), so that no NVIDIA header is needed to build.
// Sizes, offsets and version words are asserted here and, if a real nvml.h is found, compared with it by tests/abi.
// Names follow NVIDIA's, so that the driver's documentation applies.
namespace gpuledger::nvml {

extern "C" {

struct DeviceHandle;
struct EventSetHandle;
struct GpmSampleHandle;
using Device = DeviceHandle*;
using EventSet = EventSetHandle*;
using GpmSample = GpmSampleHandle*;

enum Return : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,  // for utilization: no active process, no failure
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kIrqIssue = 11,
  kLibraryNotFound = 12,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kLibRmVersionMismatch = 18,
  kInUse = 19,
  kNoData = 21,
  kArgumentVersionMismatch = 25,
  kUnknown = 999,
};

inline constexpr unsigned kUuidBufferSize = 96;
inline constexpr unsigned kNameBufferSize = 96;
inline constexpr unsigned kVersionBufferSize = 80;
inline constexpr unsigned kSerialBufferSize = 30;
inline constexpr unsigned kVbiosBufferSize = 32;
inline constexpr unsigned kTemperatureGpu = 0;
inline constexpr unsigned kClockSm = 1;
inline constexpr unsigned kClockMemory = 2;
inline constexpr unsigned kPcieSent = 0;
inline constexpr unsigned kPcieReceived = 1;
inline constexpr unsigned kFeatureEnabled = 1;
inline constexpr unsigned kNoInstance = 0xFFFFFFFFu;  // gpuInstanceId outside MIG
inline constexpr unsigned long long kValueNotAvailable = ~0ull;
inline constexpr unsigned kValueNotAvailable32 = ~0u;
inline constexpr unsigned long long kEventTypeXid = 0x8;

constexpr unsigned struct_version(size_t size, unsigned version) {
  return static_cast<unsigned>(size) | version << 24;
}

struct PciInfo {
  char busIdLegacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pciDeviceId;
  unsigned pciSubSystemId;
  char busId[32];
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, busId) == 36);

struct Utilization {
  unsigned gpu;
  unsigned memory;
};
static_assert(sizeof(Utilization) == 8);

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(Memory) == 24);

struct Memory_v2 {
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(Memory_v2) == 40 && offsetof(Memory_v2, total) == 8 && offsetof(Memory_v2, used) == 32);
inline constexpr unsigned kMemoryVersion2 = struct_version(sizeof(Memory_v2), 2);
static_assert(kMemoryVersion2 == 0x02000028);

// nvmlDeviceGetComputeRunningProcesses, the first version.
struct ProcessInfo_v1 {
  unsigned pid;
  unsigned long long usedGpuMemory;
};
static_assert(sizeof(ProcessInfo_v1) == 16 && offsetof(ProcessInfo_v1, usedGpuMemory) == 8);

// _v2 and _v3. Early R535 drivers wrote 32-byte entries under the same names: see nvml_processes.h.
struct ProcessInfo {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId;
  unsigned computeInstanceId;
};
static_assert(sizeof(ProcessInfo) == 24 && offsetof(ProcessInfo, usedGpuMemory) == 8 &&
              offsetof(ProcessInfo, gpuInstanceId) == 16 && offsetof(ProcessInfo, computeInstanceId) == 20);

struct ProcessUtilizationSample {
  unsigned pid;
  unsigned long long timeStamp;
  unsigned smUtil;
  unsigned memUtil;
  unsigned encUtil;
  unsigned decUtil;
};
static_assert(sizeof(ProcessUtilizationSample) == 32 && offsetof(ProcessUtilizationSample, timeStamp) == 8 &&
              offsetof(ProcessUtilizationSample, smUtil) == 16 && offsetof(ProcessUtilizationSample, decUtil) == 28);

// The newer call's entry, with another field order.
struct ProcessUtilizationInfo {
  unsigned long long timeStamp;
  unsigned pid;
  unsigned smUtil;
  unsigned memUtil;
  unsigned encUtil;
  unsigned decUtil;
  unsigned jpgUtil;
  unsigned ofaUtil;
};
static_assert(sizeof(ProcessUtilizationInfo) == 40 && offsetof(ProcessUtilizationInfo, pid) == 8 &&
              offsetof(ProcessUtilizationInfo, smUtil) == 12 && offsetof(ProcessUtilizationInfo, ofaUtil) == 32);

struct ProcessesUtilizationInfo {
  unsigned version;
  unsigned processSamplesCount;
  unsigned long long lastSeenTimeStamp;
  ProcessUtilizationInfo* procUtilArray;
};
static_assert(sizeof(ProcessesUtilizationInfo) == 24 && offsetof(ProcessesUtilizationInfo, lastSeenTimeStamp) == 8 &&
              offsetof(ProcessesUtilizationInfo, procUtilArray) == 16);
inline constexpr unsigned kProcessesUtilizationInfoVersion1 = struct_version(sizeof(ProcessesUtilizationInfo), 1);
static_assert(kProcessesUtilizationInfoVersion1 == 0x01000018);

union Value {
  double dVal;
  int siVal;
  unsigned uiVal;
  unsigned long ulVal;
  unsigned long long ullVal;
  long long sllVal;
  unsigned short usVal;
};
static_assert(sizeof(Value) == 8);

enum ValueType : int {
  kValueDouble = 0,
  kValueUnsignedInt = 1,
  kValueUnsignedLong = 2,
  kValueUnsignedLongLong = 3,
  kValueSignedLongLong = 4,
  kValueSignedInt = 5,
  kValueUnsignedShort = 6,
};

struct FieldValue {
  unsigned fieldId;
  unsigned scopeId;
  long long timestamp;
  long long latencyUsec;
  ValueType valueType;
  Return nvmlReturn;  // for this field only
  Value value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, valueType) == 24 &&
              offsetof(FieldValue, nvmlReturn) == 28 && offsetof(FieldValue, value) == 32);
inline constexpr unsigned kScopeAllLinks = 0xFFFFFFFFu;  // for NVLink throughput fields

enum FieldId : unsigned {
  kFieldEccCorrectedVolatile = 3,
  kFieldEccUncorrectedVolatile = 4,
  kFieldEccCorrectedAggregate = 5,
  kFieldEccUncorrectedAggregate = 6,
  kFieldRetiredSingleBit = 29,
  kFieldRetiredDoubleBit = 30,
  kFieldRetiredPending = 31,
  kFieldNvlinkFlitErrors = 38,
  kFieldNvlinkDataErrors = 45,
  kFieldNvlinkReplayErrors = 52,
  kFieldNvlinkRecoveryErrors = 59,
  kFieldPowerViolation = 74,
  kFieldThermalViolation = 75,
  kFieldSyncBoostViolation = 76,
  kFieldBoardLimitViolation = 77,
  kFieldLowUtilizationViolation = 78,
  kFieldReliabilityViolation = 79,
  kFieldAppClockViolation = 80,
  kFieldMemoryTemperature = 82,
  kFieldPcieReplays = 94,
  kFieldNvlinkSent = 138,
  kFieldNvlinkReceived = 139,
  kFieldRemappedCorrectable = 142,
  kFieldRemappedUncorrectable = 143,
  kFieldRemapPending = 144,
  kFieldRemapFailed = 145,
};

struct Sample {
  unsigned long long timeStamp;
  Value sampleValue;
};
static_assert(sizeof(Sample) == 16 && offsetof(Sample, sampleValue) == 8);
inline constexpr unsigned kSamplesTotalPower = 0;

struct DeviceAttributes {
  unsigned multiprocessorCount;
  unsigned sharedCopyEngineCount;
  unsigned sharedDecoderCount;
  unsigned sharedEncoderCount;
  unsigned sharedJpegCount;
  unsigned sharedOfaCount;
  unsigned gpuInstanceSliceCount;
  unsigned computeInstanceSliceCount;
  unsigned long long memorySizeMB;
};
static_assert(sizeof(DeviceAttributes) == 40 && offsetof(DeviceAttributes, gpuInstanceSliceCount) == 24 &&
              offsetof(DeviceAttributes, memorySizeMB) == 32);

struct AccountingStats {
  unsigned gpuUtilization;  // percent, mean over its life
  unsigned memoryUtilization;
  unsigned long long maxMemoryUsage;
  unsigned long long time;       // ms; 0 while it runs
  unsigned long long startTime;  // us
  unsigned isRunning;
  unsigned reserved[5];
};
static_assert(sizeof(AccountingStats) == 56 && offsetof(AccountingStats, maxMemoryUsage) == 8 &&
              offsetof(AccountingStats, startTime) == 24 && offsetof(AccountingStats, isRunning) == 32);

struct GpmSupport {
  unsigned version;
  unsigned isSupportedDevice;
};
static_assert(sizeof(GpmSupport) == 8);
inline constexpr unsigned kGpmSupportVersion = 1;

struct GpmMetric {
  unsigned metricId;
  Return nvmlReturn;
  double value;
  const char* shortName;
  const char* longName;
  const char* unit;
};
static_assert(sizeof(GpmMetric) == 40 && offsetof(GpmMetric, value) == 8);

// The array's declared length grew (98, 210, 333) under one version number, so the driver touches only numMetrics
// entries. Ours is the first release's: every driver accepts it.
inline constexpr unsigned kMostGpmMetrics = 98;
struct GpmMetricsGet {
  unsigned version;
  unsigned numMetrics;
  GpmSample sample1;
  GpmSample sample2;
  GpmMetric metrics[kMostGpmMetrics];
};
static_assert(offsetof(GpmMetricsGet, sample1) == 8 && offsetof(GpmMetricsGet, metrics) == 24);
inline constexpr unsigned kGpmMetricsGetVersion = 1;

// In percent; traffic in MiB per second.
enum GpmMetricId : unsigned {
  kGpmGraphics = 1,
  kGpmSm = 2,
  kGpmOccupancy = 3,
  kGpmAnyTensor = 5,
  kGpmDram = 10,
  kGpmFp64 = 11,
  kGpmFp32 = 12,
  kGpmPcieSent = 20,
  kGpmPcieReceived = 21,
  kGpmNvlinkReceived = 60,
  kGpmNvlinkSent = 61,
};

struct EventData {
  Device device;
  unsigned long long eventType;
  unsigned long long eventData;
  unsigned gpuInstanceId;
  unsigned computeInstanceId;
};
static_assert(sizeof(EventData) == 32 && offsetof(EventData, eventType) == 8 && offsetof(EventData, eventData) == 16 &&
              offsetof(EventData, computeInstanceId) == 28);

}  // extern "C"

}  // namespace gpuledger::nvml
