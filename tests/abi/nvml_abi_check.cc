// SPDX-License-Identifier: Apache-2.0
// Everything here is decided by the compiler; running it only says against what.
#define NVML_NO_UNVERSIONED_FUNC_DEFS  // without it the header renames the old process list calls to the new
#include NVML_HEADER

#include <cstdio>
#include <type_traits>

#include "client_abi.h"

namespace ours = gpuledger::nvml;

namespace {

#define SAME_SIZE(our, their) static_assert(sizeof(ours::our) == sizeof(their), #our)
#define SAME_FIELD(our, their, field)                                                     \
  static_assert(offsetof(ours::our, field) == offsetof(their, field) &&                   \
                    sizeof(decltype(ours::our::field)) == sizeof(decltype(their::field)), \
                #our "::" #field)
#define SAME_VALUE(our, their) \
  static_assert(static_cast<unsigned long long>(ours::our) == static_cast<unsigned long long>(their), #our)

SAME_SIZE(PciInfo, nvmlPciInfo_t);
SAME_FIELD(PciInfo, nvmlPciInfo_t, busIdLegacy);
SAME_FIELD(PciInfo, nvmlPciInfo_t, domain);
SAME_FIELD(PciInfo, nvmlPciInfo_t, bus);
SAME_FIELD(PciInfo, nvmlPciInfo_t, device);
SAME_FIELD(PciInfo, nvmlPciInfo_t, pciDeviceId);
SAME_FIELD(PciInfo, nvmlPciInfo_t, pciSubSystemId);
SAME_FIELD(PciInfo, nvmlPciInfo_t, busId);

SAME_SIZE(Utilization, nvmlUtilization_t);
SAME_FIELD(Utilization, nvmlUtilization_t, gpu);
SAME_FIELD(Utilization, nvmlUtilization_t, memory);

SAME_SIZE(Memory, nvmlMemory_t);
SAME_FIELD(Memory, nvmlMemory_t, total);
SAME_FIELD(Memory, nvmlMemory_t, free);
SAME_FIELD(Memory, nvmlMemory_t, used);

#ifdef HEADER_HAS_MEMORY_V2
SAME_SIZE(Memory_v2, nvmlMemory_v2_t);
SAME_FIELD(Memory_v2, nvmlMemory_v2_t, version);
SAME_FIELD(Memory_v2, nvmlMemory_v2_t, total);
SAME_FIELD(Memory_v2, nvmlMemory_v2_t, reserved);
SAME_FIELD(Memory_v2, nvmlMemory_v2_t, free);
SAME_FIELD(Memory_v2, nvmlMemory_v2_t, used);
SAME_VALUE(kMemoryVersion2, nvmlMemory_v2);
#endif

SAME_SIZE(FieldValue, nvmlFieldValue_t);
SAME_FIELD(FieldValue, nvmlFieldValue_t, fieldId);
SAME_FIELD(FieldValue, nvmlFieldValue_t, scopeId);
SAME_FIELD(FieldValue, nvmlFieldValue_t, timestamp);
SAME_FIELD(FieldValue, nvmlFieldValue_t, latencyUsec);
SAME_FIELD(FieldValue, nvmlFieldValue_t, valueType);
SAME_FIELD(FieldValue, nvmlFieldValue_t, nvmlReturn);
SAME_FIELD(FieldValue, nvmlFieldValue_t, value);
SAME_VALUE(kValueDouble, NVML_VALUE_TYPE_DOUBLE);
SAME_VALUE(kValueUnsignedInt, NVML_VALUE_TYPE_UNSIGNED_INT);
SAME_VALUE(kValueUnsignedLong, NVML_VALUE_TYPE_UNSIGNED_LONG);
SAME_VALUE(kValueUnsignedLongLong, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
SAME_VALUE(kValueSignedLongLong, NVML_VALUE_TYPE_SIGNED_LONG_LONG);
SAME_VALUE(kFieldEccCorrectedVolatile, NVML_FI_DEV_ECC_SBE_VOL_TOTAL);
SAME_VALUE(kFieldEccUncorrectedVolatile, NVML_FI_DEV_ECC_DBE_VOL_TOTAL);
SAME_VALUE(kFieldEccCorrectedAggregate, NVML_FI_DEV_ECC_SBE_AGG_TOTAL);
SAME_VALUE(kFieldEccUncorrectedAggregate, NVML_FI_DEV_ECC_DBE_AGG_TOTAL);
SAME_VALUE(kFieldRetiredSingleBit, NVML_FI_DEV_RETIRED_SBE);
SAME_VALUE(kFieldRetiredDoubleBit, NVML_FI_DEV_RETIRED_DBE);
SAME_VALUE(kFieldRetiredPending, NVML_FI_DEV_RETIRED_PENDING);
SAME_VALUE(kFieldNvlinkFlitErrors, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL);
SAME_VALUE(kFieldNvlinkDataErrors, NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL);
SAME_VALUE(kFieldNvlinkReplayErrors, NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL);
SAME_VALUE(kFieldNvlinkRecoveryErrors, NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL);
SAME_VALUE(kFieldPowerViolation, NVML_FI_DEV_PERF_POLICY_POWER);
SAME_VALUE(kFieldThermalViolation, NVML_FI_DEV_PERF_POLICY_THERMAL);
SAME_VALUE(kFieldSyncBoostViolation, NVML_FI_DEV_PERF_POLICY_SYNC_BOOST);
SAME_VALUE(kFieldBoardLimitViolation, NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT);
SAME_VALUE(kFieldLowUtilizationViolation, NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION);
SAME_VALUE(kFieldReliabilityViolation, NVML_FI_DEV_PERF_POLICY_RELIABILITY);
SAME_VALUE(kFieldAppClockViolation, NVML_FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS);
SAME_VALUE(kFieldMemoryTemperature, NVML_FI_DEV_MEMORY_TEMP);
SAME_VALUE(kFieldPcieReplays, NVML_FI_DEV_PCIE_REPLAY_COUNTER);
SAME_VALUE(kPcieSent, NVML_PCIE_UTIL_TX_BYTES);
SAME_VALUE(kPcieReceived, NVML_PCIE_UTIL_RX_BYTES);
#ifdef NVML_FI_DEV_REMAPPED_FAILURE  // R450
SAME_VALUE(kFieldNvlinkSent, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX);
SAME_VALUE(kFieldNvlinkReceived, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX);
SAME_VALUE(kFieldRemappedCorrectable, NVML_FI_DEV_REMAPPED_COR);
SAME_VALUE(kFieldRemappedUncorrectable, NVML_FI_DEV_REMAPPED_UNC);
SAME_VALUE(kFieldRemapPending, NVML_FI_DEV_REMAPPED_PENDING);
SAME_VALUE(kFieldRemapFailed, NVML_FI_DEV_REMAPPED_FAILURE);
#endif

SAME_SIZE(ProcessInfo_v1, nvmlProcessInfo_v1_t);
SAME_FIELD(ProcessInfo_v1, nvmlProcessInfo_v1_t, pid);
SAME_FIELD(ProcessInfo_v1, nvmlProcessInfo_v1_t, usedGpuMemory);

// The v2 entry is what _v2 and (but for early R535) _v3 fill; a header of that time has the 32-byte one as
// nvmlProcessInfo_t, so the fields are compared by the versioned name.
SAME_SIZE(ProcessInfo, nvmlProcessInfo_v2_t);
SAME_FIELD(ProcessInfo, nvmlProcessInfo_v2_t, pid);
SAME_FIELD(ProcessInfo, nvmlProcessInfo_v2_t, usedGpuMemory);
SAME_FIELD(ProcessInfo, nvmlProcessInfo_v2_t, gpuInstanceId);
SAME_FIELD(ProcessInfo, nvmlProcessInfo_v2_t, computeInstanceId);

SAME_SIZE(ProcessUtilizationSample, nvmlProcessUtilizationSample_t);
SAME_FIELD(ProcessUtilizationSample, nvmlProcessUtilizationSample_t, pid);
SAME_FIELD(ProcessUtilizationSample, nvmlProcessUtilizationSample_t, timeStamp);
SAME_FIELD(ProcessUtilizationSample, nvmlProcessUtilizationSample_t, smUtil);
SAME_FIELD(ProcessUtilizationSample, nvmlProcessUtilizationSample_t, memUtil);
SAME_FIELD(ProcessUtilizationSample, nvmlProcessUtilizationSample_t, encUtil);
SAME_FIELD(ProcessUtilizationSample, nvmlProcessUtilizationSample_t, decUtil);

#ifdef HEADER_HAS_PROCESSES_UTILIZATION
SAME_SIZE(ProcessUtilizationInfo, nvmlProcessUtilizationInfo_v1_t);
SAME_FIELD(ProcessUtilizationInfo, nvmlProcessUtilizationInfo_v1_t, timeStamp);
SAME_FIELD(ProcessUtilizationInfo, nvmlProcessUtilizationInfo_v1_t, pid);
SAME_FIELD(ProcessUtilizationInfo, nvmlProcessUtilizationInfo_v1_t, smUtil);
SAME_FIELD(ProcessUtilizationInfo, nvmlProcessUtilizationInfo_v1_t, memUtil);
SAME_FIELD(ProcessUtilizationInfo, nvmlProcessUtilizationInfo_v1_t, encUtil);
SAME_FIELD(ProcessUtilizationInfo, nvmlProcessUtilizationInfo_v1_t, decUtil);
SAME_FIELD(ProcessUtilizationInfo, nvmlProcessUtilizationInfo_v1_t, jpgUtil);
SAME_FIELD(ProcessUtilizationInfo, nvmlProcessUtilizationInfo_v1_t, ofaUtil);
SAME_SIZE(ProcessesUtilizationInfo, nvmlProcessesUtilizationInfo_v1_t);
SAME_FIELD(ProcessesUtilizationInfo, nvmlProcessesUtilizationInfo_v1_t, version);
SAME_FIELD(ProcessesUtilizationInfo, nvmlProcessesUtilizationInfo_v1_t, processSamplesCount);
SAME_FIELD(ProcessesUtilizationInfo, nvmlProcessesUtilizationInfo_v1_t, lastSeenTimeStamp);
SAME_FIELD(ProcessesUtilizationInfo, nvmlProcessesUtilizationInfo_v1_t, procUtilArray);
SAME_VALUE(kProcessesUtilizationInfoVersion1, nvmlProcessesUtilizationInfo_v1);
#endif

SAME_SIZE(DeviceAttributes, nvmlDeviceAttributes_t);
SAME_FIELD(DeviceAttributes, nvmlDeviceAttributes_t, multiprocessorCount);
SAME_FIELD(DeviceAttributes, nvmlDeviceAttributes_t, sharedCopyEngineCount);
SAME_FIELD(DeviceAttributes, nvmlDeviceAttributes_t, sharedDecoderCount);
SAME_FIELD(DeviceAttributes, nvmlDeviceAttributes_t, sharedEncoderCount);
SAME_FIELD(DeviceAttributes, nvmlDeviceAttributes_t, sharedJpegCount);
SAME_FIELD(DeviceAttributes, nvmlDeviceAttributes_t, sharedOfaCount);
SAME_FIELD(DeviceAttributes, nvmlDeviceAttributes_t, gpuInstanceSliceCount);
SAME_FIELD(DeviceAttributes, nvmlDeviceAttributes_t, computeInstanceSliceCount);
SAME_FIELD(DeviceAttributes, nvmlDeviceAttributes_t, memorySizeMB);

SAME_SIZE(AccountingStats, nvmlAccountingStats_t);
SAME_FIELD(AccountingStats, nvmlAccountingStats_t, gpuUtilization);
SAME_FIELD(AccountingStats, nvmlAccountingStats_t, memoryUtilization);
SAME_FIELD(AccountingStats, nvmlAccountingStats_t, maxMemoryUsage);
SAME_FIELD(AccountingStats, nvmlAccountingStats_t, time);
SAME_FIELD(AccountingStats, nvmlAccountingStats_t, startTime);
SAME_FIELD(AccountingStats, nvmlAccountingStats_t, isRunning);

#ifdef HEADER_HAS_GPM
SAME_SIZE(GpmSupport, nvmlGpmSupport_t);
SAME_FIELD(GpmSupport, nvmlGpmSupport_t, version);
SAME_FIELD(GpmSupport, nvmlGpmSupport_t, isSupportedDevice);
SAME_SIZE(GpmMetric, nvmlGpmMetric_t);
SAME_FIELD(GpmMetric, nvmlGpmMetric_t, metricId);
SAME_FIELD(GpmMetric, nvmlGpmMetric_t, nvmlReturn);
SAME_FIELD(GpmMetric, nvmlGpmMetric_t, value);
// All but the array's length, which is every release's own.
SAME_FIELD(GpmMetricsGet, nvmlGpmMetricsGet_t, version);
SAME_FIELD(GpmMetricsGet, nvmlGpmMetricsGet_t, numMetrics);
SAME_FIELD(GpmMetricsGet, nvmlGpmMetricsGet_t, sample1);
SAME_FIELD(GpmMetricsGet, nvmlGpmMetricsGet_t, sample2);
static_assert(offsetof(ours::GpmMetricsGet, metrics) == offsetof(nvmlGpmMetricsGet_t, metrics));
static_assert(sizeof(ours::GpmMetricsGet) <= sizeof(nvmlGpmMetricsGet_t));
SAME_VALUE(kGpmSupportVersion, NVML_GPM_SUPPORT_VERSION);
SAME_VALUE(kGpmMetricsGetVersion, NVML_GPM_METRICS_GET_VERSION);
SAME_VALUE(kGpmGraphics, NVML_GPM_METRIC_GRAPHICS_UTIL);
SAME_VALUE(kGpmSm, NVML_GPM_METRIC_SM_UTIL);
SAME_VALUE(kGpmOccupancy, NVML_GPM_METRIC_SM_OCCUPANCY);
SAME_VALUE(kGpmAnyTensor, NVML_GPM_METRIC_ANY_TENSOR_UTIL);
SAME_VALUE(kGpmDram, NVML_GPM_METRIC_DRAM_BW_UTIL);
SAME_VALUE(kGpmFp64, NVML_GPM_METRIC_FP64_UTIL);
SAME_VALUE(kGpmFp32, NVML_GPM_METRIC_FP32_UTIL);
SAME_VALUE(kGpmPcieSent, NVML_GPM_METRIC_PCIE_TX_PER_SEC);
SAME_VALUE(kGpmPcieReceived, NVML_GPM_METRIC_PCIE_RX_PER_SEC);
SAME_VALUE(kGpmNvlinkSent, NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC);
SAME_VALUE(kGpmNvlinkReceived, NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC);
#endif

SAME_SIZE(Value, nvmlValue_t);
SAME_SIZE(Sample, nvmlSample_t);
SAME_FIELD(Sample, nvmlSample_t, timeStamp);
SAME_FIELD(Sample, nvmlSample_t, sampleValue);

SAME_SIZE(EventData, nvmlEventData_t);
SAME_FIELD(EventData, nvmlEventData_t, device);
SAME_FIELD(EventData, nvmlEventData_t, eventType);
SAME_FIELD(EventData, nvmlEventData_t, eventData);
SAME_FIELD(EventData, nvmlEventData_t, gpuInstanceId);
SAME_FIELD(EventData, nvmlEventData_t, computeInstanceId);

// What only the simulator answers, for other clients.
SAME_SIZE(BAR1Memory, nvmlBAR1Memory_t);
SAME_FIELD(BAR1Memory, nvmlBAR1Memory_t, bar1Total);
SAME_FIELD(BAR1Memory, nvmlBAR1Memory_t, bar1Free);
SAME_FIELD(BAR1Memory, nvmlBAR1Memory_t, bar1Used);
SAME_SIZE(GpuInstanceInfo, nvmlGpuInstanceInfo_t);
SAME_FIELD(GpuInstanceInfo, nvmlGpuInstanceInfo_t, device);
SAME_FIELD(GpuInstanceInfo, nvmlGpuInstanceInfo_t, id);
SAME_FIELD(GpuInstanceInfo, nvmlGpuInstanceInfo_t, profileId);
SAME_FIELD(GpuInstanceInfo, nvmlGpuInstanceInfo_t, placement);
SAME_SIZE(ComputeInstanceInfo, nvmlComputeInstanceInfo_t);
SAME_FIELD(ComputeInstanceInfo, nvmlComputeInstanceInfo_t, device);
SAME_FIELD(ComputeInstanceInfo, nvmlComputeInstanceInfo_t, gpuInstance);
SAME_FIELD(ComputeInstanceInfo, nvmlComputeInstanceInfo_t, id);
SAME_FIELD(ComputeInstanceInfo, nvmlComputeInstanceInfo_t, profileId);
SAME_FIELD(ComputeInstanceInfo, nvmlComputeInstanceInfo_t, placement);
SAME_SIZE(InstancePlacement, nvmlGpuInstancePlacement_t);
SAME_FIELD(InstancePlacement, nvmlGpuInstancePlacement_t, start);
SAME_FIELD(InstancePlacement, nvmlGpuInstancePlacement_t, size);
SAME_SIZE(GpuInstanceProfileInfo, nvmlGpuInstanceProfileInfo_t);
SAME_FIELD(GpuInstanceProfileInfo, nvmlGpuInstanceProfileInfo_t, id);
SAME_FIELD(GpuInstanceProfileInfo, nvmlGpuInstanceProfileInfo_t, isP2pSupported);
SAME_FIELD(GpuInstanceProfileInfo, nvmlGpuInstanceProfileInfo_t, sliceCount);
SAME_FIELD(GpuInstanceProfileInfo, nvmlGpuInstanceProfileInfo_t, instanceCount);
SAME_FIELD(GpuInstanceProfileInfo, nvmlGpuInstanceProfileInfo_t, multiprocessorCount);
SAME_FIELD(GpuInstanceProfileInfo, nvmlGpuInstanceProfileInfo_t, copyEngineCount);
SAME_FIELD(GpuInstanceProfileInfo, nvmlGpuInstanceProfileInfo_t, decoderCount);
SAME_FIELD(GpuInstanceProfileInfo, nvmlGpuInstanceProfileInfo_t, encoderCount);
SAME_FIELD(GpuInstanceProfileInfo, nvmlGpuInstanceProfileInfo_t, jpegCount);
SAME_FIELD(GpuInstanceProfileInfo, nvmlGpuInstanceProfileInfo_t, ofaCount);
SAME_FIELD(GpuInstanceProfileInfo, nvmlGpuInstanceProfileInfo_t, memorySizeMB);
SAME_SIZE(ComputeInstanceProfileInfo, nvmlComputeInstanceProfileInfo_t);
SAME_FIELD(ComputeInstanceProfileInfo, nvmlComputeInstanceProfileInfo_t, id);
SAME_FIELD(ComputeInstanceProfileInfo, nvmlComputeInstanceProfileInfo_t, sliceCount);
SAME_FIELD(ComputeInstanceProfileInfo, nvmlComputeInstanceProfileInfo_t, instanceCount);
SAME_FIELD(ComputeInstanceProfileInfo, nvmlComputeInstanceProfileInfo_t, multiprocessorCount);
SAME_FIELD(ComputeInstanceProfileInfo, nvmlComputeInstanceProfileInfo_t, sharedCopyEngineCount);
SAME_FIELD(ComputeInstanceProfileInfo, nvmlComputeInstanceProfileInfo_t, sharedDecoderCount);
SAME_FIELD(ComputeInstanceProfileInfo, nvmlComputeInstanceProfileInfo_t, sharedEncoderCount);
SAME_FIELD(ComputeInstanceProfileInfo, nvmlComputeInstanceProfileInfo_t, sharedJpegCount);
SAME_FIELD(ComputeInstanceProfileInfo, nvmlComputeInstanceProfileInfo_t, sharedOfaCount);

#ifdef HAS_nvmlTemperature_v1_t
SAME_SIZE(Temperature_v1, nvmlTemperature_v1_t);
SAME_FIELD(Temperature_v1, nvmlTemperature_v1_t, version);
SAME_FIELD(Temperature_v1, nvmlTemperature_v1_t, sensorType);
SAME_FIELD(Temperature_v1, nvmlTemperature_v1_t, temperature);
#endif

#ifdef HAS_nvmlProcessDetailList_v1_t
SAME_SIZE(ProcessDetailList, nvmlProcessDetailList_v1_t);
SAME_FIELD(ProcessDetailList, nvmlProcessDetailList_v1_t, version);
SAME_FIELD(ProcessDetailList, nvmlProcessDetailList_v1_t, mode);
SAME_FIELD(ProcessDetailList, nvmlProcessDetailList_v1_t, numProcArrayEntries);
SAME_FIELD(ProcessDetailList, nvmlProcessDetailList_v1_t, procArray);
SAME_SIZE(ProcessDetail, nvmlProcessDetail_v1_t);
SAME_FIELD(ProcessDetail, nvmlProcessDetail_v1_t, pid);
SAME_FIELD(ProcessDetail, nvmlProcessDetail_v1_t, usedGpuMemory);
SAME_FIELD(ProcessDetail, nvmlProcessDetail_v1_t, gpuInstanceId);
SAME_FIELD(ProcessDetail, nvmlProcessDetail_v1_t, computeInstanceId);
SAME_FIELD(ProcessDetail, nvmlProcessDetail_v1_t, usedGpuCcProtectedMemory);
#endif

#ifdef HAS_nvmlAccountingStats_v2_t
SAME_SIZE(AccountingStats_v2, nvmlAccountingStats_v2_t);
SAME_FIELD(AccountingStats_v2, nvmlAccountingStats_v2_t, pid);
SAME_FIELD(AccountingStats_v2, nvmlAccountingStats_v2_t, isRunning);
SAME_FIELD(AccountingStats_v2, nvmlAccountingStats_v2_t, gpuUtilization);
SAME_FIELD(AccountingStats_v2, nvmlAccountingStats_v2_t, memoryUtilization);
SAME_FIELD(AccountingStats_v2, nvmlAccountingStats_v2_t, maxMemoryUsage);
SAME_FIELD(AccountingStats_v2, nvmlAccountingStats_v2_t, sampleCount);
SAME_FIELD(AccountingStats_v2, nvmlAccountingStats_v2_t, startTime);
#endif

#ifdef HAS_nvmlGpuInstanceProfileInfo_v2_t
SAME_SIZE(GpuInstanceProfileInfo_v2, nvmlGpuInstanceProfileInfo_v2_t);
SAME_FIELD(GpuInstanceProfileInfo_v2, nvmlGpuInstanceProfileInfo_v2_t, version);
SAME_FIELD(GpuInstanceProfileInfo_v2, nvmlGpuInstanceProfileInfo_v2_t, id);
SAME_FIELD(GpuInstanceProfileInfo_v2, nvmlGpuInstanceProfileInfo_v2_t, isP2pSupported);
SAME_FIELD(GpuInstanceProfileInfo_v2, nvmlGpuInstanceProfileInfo_v2_t, sliceCount);
SAME_FIELD(GpuInstanceProfileInfo_v2, nvmlGpuInstanceProfileInfo_v2_t, instanceCount);
SAME_FIELD(GpuInstanceProfileInfo_v2, nvmlGpuInstanceProfileInfo_v2_t, multiprocessorCount);
SAME_FIELD(GpuInstanceProfileInfo_v2, nvmlGpuInstanceProfileInfo_v2_t, copyEngineCount);
SAME_FIELD(GpuInstanceProfileInfo_v2, nvmlGpuInstanceProfileInfo_v2_t, decoderCount);
SAME_FIELD(GpuInstanceProfileInfo_v2, nvmlGpuInstanceProfileInfo_v2_t, encoderCount);
SAME_FIELD(GpuInstanceProfileInfo_v2, nvmlGpuInstanceProfileInfo_v2_t, jpegCount);
SAME_FIELD(GpuInstanceProfileInfo_v2, nvmlGpuInstanceProfileInfo_v2_t, ofaCount);
SAME_FIELD(GpuInstanceProfileInfo_v2, nvmlGpuInstanceProfileInfo_v2_t, memorySizeMB);
SAME_FIELD(GpuInstanceProfileInfo_v2, nvmlGpuInstanceProfileInfo_v2_t, name);
SAME_VALUE(kGpuInstanceProfileInfoVersion2, nvmlGpuInstanceProfileInfo_v2);
#endif

#ifdef HAS_nvmlGpuInstanceProfileInfo_v3_t
SAME_SIZE(GpuInstanceProfileInfo_v3, nvmlGpuInstanceProfileInfo_v3_t);
SAME_FIELD(GpuInstanceProfileInfo_v3, nvmlGpuInstanceProfileInfo_v3_t, version);
SAME_FIELD(GpuInstanceProfileInfo_v3, nvmlGpuInstanceProfileInfo_v3_t, id);
SAME_FIELD(GpuInstanceProfileInfo_v3, nvmlGpuInstanceProfileInfo_v3_t, sliceCount);
SAME_FIELD(GpuInstanceProfileInfo_v3, nvmlGpuInstanceProfileInfo_v3_t, instanceCount);
SAME_FIELD(GpuInstanceProfileInfo_v3, nvmlGpuInstanceProfileInfo_v3_t, multiprocessorCount);
SAME_FIELD(GpuInstanceProfileInfo_v3, nvmlGpuInstanceProfileInfo_v3_t, copyEngineCount);
SAME_FIELD(GpuInstanceProfileInfo_v3, nvmlGpuInstanceProfileInfo_v3_t, decoderCount);
SAME_FIELD(GpuInstanceProfileInfo_v3, nvmlGpuInstanceProfileInfo_v3_t, encoderCount);
SAME_FIELD(GpuInstanceProfileInfo_v3, nvmlGpuInstanceProfileInfo_v3_t, jpegCount);
SAME_FIELD(GpuInstanceProfileInfo_v3, nvmlGpuInstanceProfileInfo_v3_t, ofaCount);
SAME_FIELD(GpuInstanceProfileInfo_v3, nvmlGpuInstanceProfileInfo_v3_t, memorySizeMB);
SAME_FIELD(GpuInstanceProfileInfo_v3, nvmlGpuInstanceProfileInfo_v3_t, name);
SAME_FIELD(GpuInstanceProfileInfo_v3, nvmlGpuInstanceProfileInfo_v3_t, capabilities);
SAME_VALUE(kGpuInstanceProfileInfoVersion3, nvmlGpuInstanceProfileInfo_v3);
#endif

#ifdef HAS_nvmlComputeInstanceProfileInfo_v2_t
SAME_SIZE(ComputeInstanceProfileInfo_v2, nvmlComputeInstanceProfileInfo_v2_t);
SAME_FIELD(ComputeInstanceProfileInfo_v2, nvmlComputeInstanceProfileInfo_v2_t, version);
SAME_FIELD(ComputeInstanceProfileInfo_v2, nvmlComputeInstanceProfileInfo_v2_t, name);
static_assert(offsetof(ours::ComputeInstanceProfileInfo_v2, info) == offsetof(nvmlComputeInstanceProfileInfo_v2_t, id));
SAME_VALUE(kComputeInstanceProfileInfoVersion2, nvmlComputeInstanceProfileInfo_v2);
#endif

#ifdef HAS_nvmlGpuFabricInfo_t
SAME_SIZE(GpuFabricInfo, nvmlGpuFabricInfo_t);
SAME_FIELD(GpuFabricInfo, nvmlGpuFabricInfo_t, clusterUuid);
SAME_FIELD(GpuFabricInfo, nvmlGpuFabricInfo_t, status);
SAME_FIELD(GpuFabricInfo, nvmlGpuFabricInfo_t, cliqueId);
SAME_FIELD(GpuFabricInfo, nvmlGpuFabricInfo_t, state);
SAME_VALUE(kFabricNotSupported, NVML_GPU_FABRIC_STATE_NOT_SUPPORTED);
SAME_VALUE(kFabricCompleted, NVML_GPU_FABRIC_STATE_COMPLETED);
#endif

#ifdef HAS_nvmlGpuFabricInfo_v2_t
SAME_VALUE(kGpuFabricInfoVersion2, nvmlGpuFabricInfo_v2);
SAME_FIELD(GpuFabricInfo_v3, nvmlGpuFabricInfo_v2_t, healthMask);
static_assert(offsetof(ours::GpuFabricInfo_v3, info) == offsetof(nvmlGpuFabricInfo_v2_t, clusterUuid));
#endif

#ifdef HAS_nvmlGpuFabricInfo_v3_t
SAME_SIZE(GpuFabricInfo_v3, nvmlGpuFabricInfo_v3_t);
SAME_FIELD(GpuFabricInfo_v3, nvmlGpuFabricInfo_v3_t, version);
SAME_FIELD(GpuFabricInfo_v3, nvmlGpuFabricInfo_v3_t, healthMask);
SAME_FIELD(GpuFabricInfo_v3, nvmlGpuFabricInfo_v3_t, healthSummary);
SAME_VALUE(kGpuFabricInfoVersion3, nvmlGpuFabricInfo_v3);
#endif

SAME_VALUE(kLocationDeviceMemory, NVML_MEMORY_LOCATION_DEVICE_MEMORY);
SAME_VALUE(kLocationSram, NVML_MEMORY_LOCATION_SRAM);
SAME_VALUE(kMemoryLocations, NVML_MEMORY_LOCATION_COUNT);
SAME_VALUE(kEventTypeMigChange, nvmlEventMigConfigChange);
SAME_VALUE(kTopologyNode, NVML_TOPOLOGY_NODE);
SAME_VALUE(kTopologySystem, NVML_TOPOLOGY_SYSTEM);
SAME_VALUE(kPcieSent, NVML_PCIE_UTIL_TX_BYTES);
SAME_VALUE(kPcieReceived, NVML_PCIE_UTIL_RX_BYTES);

SAME_VALUE(kSuccess, NVML_SUCCESS);
SAME_VALUE(kUninitialized, NVML_ERROR_UNINITIALIZED);
SAME_VALUE(kInvalidArgument, NVML_ERROR_INVALID_ARGUMENT);
SAME_VALUE(kNotSupported, NVML_ERROR_NOT_SUPPORTED);
SAME_VALUE(kNoPermission, NVML_ERROR_NO_PERMISSION);
SAME_VALUE(kNotFound, NVML_ERROR_NOT_FOUND);
SAME_VALUE(kInsufficientSize, NVML_ERROR_INSUFFICIENT_SIZE);
SAME_VALUE(kDriverNotLoaded, NVML_ERROR_DRIVER_NOT_LOADED);
SAME_VALUE(kTimeout, NVML_ERROR_TIMEOUT);
SAME_VALUE(kIrqIssue, NVML_ERROR_IRQ_ISSUE);
SAME_VALUE(kLibraryNotFound, NVML_ERROR_LIBRARY_NOT_FOUND);
SAME_VALUE(kFunctionNotFound, NVML_ERROR_FUNCTION_NOT_FOUND);
SAME_VALUE(kGpuIsLost, NVML_ERROR_GPU_IS_LOST);
SAME_VALUE(kResetRequired, NVML_ERROR_RESET_REQUIRED);
SAME_VALUE(kLibRmVersionMismatch, NVML_ERROR_LIB_RM_VERSION_MISMATCH);
SAME_VALUE(kInUse, NVML_ERROR_IN_USE);
SAME_VALUE(kNoData, NVML_ERROR_NO_DATA);
SAME_VALUE(kArgumentVersionMismatch, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
SAME_VALUE(kUnknown, NVML_ERROR_UNKNOWN);
SAME_VALUE(kUuidBufferSize, NVML_DEVICE_UUID_V2_BUFFER_SIZE);
SAME_VALUE(kNameBufferSize, NVML_DEVICE_NAME_V2_BUFFER_SIZE);
SAME_VALUE(kVersionBufferSize, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE);
SAME_VALUE(kTemperatureGpu, NVML_TEMPERATURE_GPU);
SAME_VALUE(kClockSm, NVML_CLOCK_SM);
SAME_VALUE(kClockMemory, NVML_CLOCK_MEM);
SAME_VALUE(kSamplesTotalPower, NVML_TOTAL_POWER_SAMPLES);
SAME_VALUE(kFeatureEnabled, NVML_FEATURE_ENABLED);
SAME_VALUE(kEventTypeXid, nvmlEventTypeXidCriticalError);
static_assert(ours::kValueNotAvailable == static_cast<unsigned long long>(NVML_VALUE_NOT_AVAILABLE));

template <typename T>
concept Sized = requires {
  sizeof(T);
};

// The same in a call: as wide, both pointer or both number, and what is pointed to as large (but for the two
// structures whose length is every release's own).
template <typename Our, typename Their>
constexpr bool passes_alike() {
  if constexpr (std::is_pointer_v<Our> && std::is_pointer_v<Their>) {
    using OurTarget = std::remove_pointer_t<Our>;
    using TheirTarget = std::remove_pointer_t<Their>;
    if constexpr (std::is_same_v<OurTarget, ours::GpmMetricsGet>) return Sized<TheirTarget>;
    if constexpr (std::is_same_v<OurTarget, ours::GpuFabricInfo_v3>) return Sized<TheirTarget>;
    if constexpr (Sized<OurTarget> && Sized<TheirTarget>) return sizeof(OurTarget) == sizeof(TheirTarget);
    return Sized<OurTarget> == Sized<TheirTarget>;
  } else {
    return std::is_pointer_v<Our> == std::is_pointer_v<Their> && sizeof(Our) == sizeof(Their) &&
           (std::is_integral_v<Our> || std::is_enum_v<Our>)&&(std::is_integral_v<Their> || std::is_enum_v<Their>);
  }
}

template <typename Our, typename Their>
struct SameCall : std::false_type {};
template <typename OurResult, typename... Our, typename TheirResult, typename... Their>
requires(sizeof...(Our) == sizeof...(Their)) struct SameCall<OurResult(Our...), TheirResult(Their...)>
    : std::bool_constant<passes_alike<OurResult, TheirResult>() && (passes_alike<Our, Their>() && ...)> {
};

}  // namespace

namespace gpuledger::nvml {
#define NVML_FUNCTION(need, result, symbol, parameters) \
  static_assert(SameCall<result parameters, std::remove_pointer_t<decltype(&::symbol)>>::value, #symbol);
#include "known_functions.inc"
#undef NVML_FUNCTION
}  // namespace gpuledger::nvml

int main() {
  int count = 0;
#define NVML_FUNCTION(need, result, symbol, parameters) ++count;
#include "known_functions.inc"
#undef NVML_FUNCTION
  std::printf("our NVML declarations agree with %s (%d functions)\n", NVML_HEADER, count);
  return count > 40 ? 0 : 1;
}
