// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Our own declarations of the libdcgm calls we use, so that none of its headers is needed to build. One layout and one
// set of version words work for every release from 3.0.4 to 4.6.0. Names follow NVIDIA's, so that DCGM's documentation
// applies. Sizes and offsets are those of a 64-bit Linux.
namespace gpuledger::dcgm {

enum Return : int {
  kOk = 0,
  kBadParameter = -1,
  kNotSupported = -6,
  kNvmlError = -8,
  kUninitialized = -10,
  kTimeout = -11,
  kVersionMismatch = -12,
  kUnknownField = -13,
  kNoData = -14,
  kStaleData = -15,
  kNotWatched = -16,
  kNoPermission = -17,
  kGpuIsLost = -18,
  kFunctionNotFound = -20,  // the engine is older than the library
  kConnectionNotValid = -21,
  kRequiresRoot = -29,
  kInsufficientSize = -31,
  kModuleNotLoaded = -33,
  kGroupIsEmpty = -35,
  kProfilingNotSupported = -36,
  kProfilingLibraryError = -37,
  kProfilingMultiPass = -38,
  kPaused = -54,
  kNvmlNotLoaded = -56,
  kNvmlDriverTimeout = -57,
};

using Handle = uintptr_t;
using Group = uintptr_t;
using FieldGroup = uintptr_t;
using FieldId = unsigned short;

inline constexpr Group kAllGpus = 0x7fffffff;
inline constexpr int kGroupEmpty = 1;
inline constexpr int kOrderAscending = 1;
inline constexpr int kOrderDescending = 2;
inline constexpr unsigned kLiveValue = 1;  // from the driver, not the engine's cache
inline constexpr int kModeAuto = 1;
inline constexpr int kSeverityNone = 0;
inline constexpr int kMostDevices = 32;
inline constexpr int kMostInstances = 448;

enum EntityKind : int { kEntityNone = 0, kEntityGpu = 1, kEntityGpuInstance = 4, kEntityComputeInstance = 5 };

constexpr unsigned struct_version(size_t size, unsigned version) {
  return static_cast<unsigned>(size) | version << 24;
}

struct ConnectParams {
  unsigned version;
  unsigned persistAfterDisconnect;
  unsigned timeoutMs;
  unsigned addressIsUnixSocket;
};
inline constexpr unsigned kConnectParamsVersion = struct_version(sizeof(ConnectParams), 2);
static_assert(kConnectParamsVersion == 0x02000010);

// Version 1 of 3: every release accepts it.
struct EmbeddedParams {
  unsigned version;
  int opMode;
  Handle handle;        // out
  const char* logFile;  // nullptr means /var/log/nv-hostengine.log, not "none" as the header says
  int severity;
  unsigned denyListCount;
  unsigned denyList[10];
};
inline constexpr unsigned kEmbeddedParamsVersion = struct_version(sizeof(EmbeddedParams), 1);
static_assert(kEmbeddedParamsVersion == 0x01000048);
static_assert(offsetof(EmbeddedParams, logFile) == 16 && offsetof(EmbeddedParams, denyList) == 32);

struct VersionInfo {
  unsigned version;
  char text[512];  // "version:4.6.0;arch:x86_64;..."
};
inline constexpr unsigned kVersionInfoVersion = struct_version(sizeof(VersionInfo), 2);
static_assert(kVersionInfoVersion == 0x02000204);

struct Entity {
  int kind;
  unsigned id;
};
static_assert(sizeof(Entity) == 8);

inline constexpr size_t kBlobSize = 4096;
union Content {
  int64_t i64;
  double dbl;
  char text[256];
  char blob[kBlobSize];
};
static_assert(sizeof(Content) == 4096);

struct FieldValue_v1 {
  unsigned version;
  FieldId fieldId;
  unsigned short fieldType;  // 'i', 'd', 's', 'b', 't'
  int status;
  int64_t ts;  // microseconds since 1970
  Content value;
};
static_assert(sizeof(FieldValue_v1) == 4120 && offsetof(FieldValue_v1, ts) == 16);
static_assert(offsetof(FieldValue_v1, value) == 24);

struct FieldValue_v2 {
  unsigned version;
  int entityGroupId;
  unsigned entityId;
  FieldId fieldId;
  unsigned short fieldType;
  int status;
  unsigned unused;
  int64_t ts;
  Content value;
};
static_assert(sizeof(FieldValue_v2) == 4128 && offsetof(FieldValue_v2, status) == 16);
static_assert(offsetof(FieldValue_v2, ts) == 24 && offsetof(FieldValue_v2, value) == 32);

struct SummaryInt64 {
  int64_t minValue, maxValue, average;
};
struct SummaryInt32 {
  int32_t minValue, maxValue, average;
};
struct ProcessUtilInfo {
  unsigned pid;
  double smUtil;  // uninitialized stack memory if the process has no sample
  double memUtil;
};
struct SystemHealth {
  unsigned system;
  int health;
};

// Only startTime, endTime and maxGpuMemoryUsed are the process's; the rest is the GPU's over its life.
struct PidSingleInfo {
  unsigned gpuId;
  int64_t energyConsumed;  // millijoules of the whole GPU
  SummaryInt64 pcieRxBandwidth;
  SummaryInt64 pcieTxBandwidth;
  int64_t pcieReplays;
  int64_t startTime;  // microseconds since 1970
  int64_t endTime;    // 0: runs
  ProcessUtilInfo processUtilization;
  SummaryInt32 smUtilization;
  SummaryInt32 memoryUtilization;
  unsigned eccSingleBit;
  unsigned eccDoubleBit;
  SummaryInt32 memoryClock;
  SummaryInt32 smClock;
  int numXidCriticalErrors;
  int64_t xidCriticalErrorsTs[10];
  int numOtherComputePids;
  unsigned otherComputePids[16];
  int numOtherGraphicsPids;
  unsigned otherGraphicsPids[16];
  int64_t maxGpuMemoryUsed;
  int64_t powerViolationTime;  // nanoseconds, despite older headers; the others too
  int64_t thermalViolationTime;
  int64_t reliabilityViolationTime;
  int64_t boardLimitViolationTime;
  int64_t lowUtilizationTime;
  int64_t syncBoostTime;
  int overallHealth;
  unsigned incidentCount;
  SystemHealth systems[10];
};
static_assert(sizeof(PidSingleInfo) == 536 && offsetof(PidSingleInfo, startTime) == 72);
static_assert(offsetof(PidSingleInfo, endTime) == 80 && offsetof(PidSingleInfo, processUtilization) == 88);
static_assert(offsetof(PidSingleInfo, smUtilization) == 112 && offsetof(PidSingleInfo, eccSingleBit) == 136);
static_assert(offsetof(PidSingleInfo, numXidCriticalErrors) == 168);
static_assert(offsetof(PidSingleInfo, xidCriticalErrorsTs) == 176);
static_assert(offsetof(PidSingleInfo, numOtherComputePids) == 256);
static_assert(offsetof(PidSingleInfo, numOtherGraphicsPids) == 324);
static_assert(offsetof(PidSingleInfo, maxGpuMemoryUsed) == 392 && offsetof(PidSingleInfo, syncBoostTime) == 440);
static_assert(offsetof(PidSingleInfo, overallHealth) == 448 && offsetof(PidSingleInfo, systems) == 456);

struct PidInfo {
  unsigned version;
  unsigned pid;  // in, and not 0
  unsigned unused;
  int numGpus;
  PidSingleInfo summary;  // do not use: its memory is the last GPU's
  PidSingleInfo gpus[kMostDevices];
};
inline constexpr unsigned kPidInfoVersion = struct_version(sizeof(PidInfo), 2);
static_assert(kPidInfoVersion == 0x02004528);
static_assert(offsetof(PidInfo, summary) == 16 && offsetof(PidInfo, gpus) == 552);

// The blob of field 205.
struct AccountingStats {
  unsigned version;
  unsigned pid;
  unsigned gpuUtilization;     // percent of its life
  unsigned memoryUtilization;  // same
  uint64_t maxMemoryUsage;
  uint64_t startTimestamp;  // microseconds since 1970
  uint64_t activeTimeUsec;  // 0: runs
};
inline constexpr unsigned kAccountingStatsVersion = struct_version(sizeof(AccountingStats), 1);
static_assert(kAccountingStatsVersion == 0x01000028 && offsetof(AccountingStats, maxMemoryUsage) == 16);

// The blob of fields 220 and 221, one value per process.
struct RunningProcess {
  unsigned version;
  unsigned pid;
  uint64_t memoryUsed;
};
inline constexpr unsigned kRunningProcessVersion = struct_version(sizeof(RunningProcess), 1);
static_assert(kRunningProcessVersion == 0x01000010);

struct HierarchyEntry {
  Entity entity;
  Entity parent;
  char gpuUuid[128];
  unsigned nvmlGpuIndex;
  unsigned nvmlInstanceId;
  unsigned nvmlComputeInstanceId;
  unsigned nvmlMigProfileId;
  unsigned nvmlProfileSlices;
};
static_assert(sizeof(HierarchyEntry) == 164 && offsetof(HierarchyEntry, nvmlInstanceId) == 148);

struct MigHierarchy {
  unsigned version;
  unsigned count;
  HierarchyEntry entityList[kMostInstances];
};
inline constexpr unsigned kMigHierarchyVersion = struct_version(sizeof(MigHierarchy), 2);
static_assert(kMigHierarchyVersion == 0x02011f08);

}  // namespace gpuledger::dcgm
