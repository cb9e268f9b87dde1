// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "engine.h"

// How each field is made from the driver's calls, as in DCGM.
namespace gpuledger::sim_dcgm {
namespace {

using nvml::Device;
using nvml::FunctionTable;

Value plain(Driver& driver, nvml::Return result, uint64_t value) {
  return result == nvml::kSuccess ? integer(value) : refusal('i', driver.translate(result));
}

Value text_of(Driver& driver, nvml::Return result, const char* text) {
  return result == nvml::kSuccess ? words(text) : refusal('s', driver.translate(result));
}

Value clock_of(Driver& driver, Device device, unsigned type) {
  unsigned mhz = 0;
  const nvml::Return result = driver.fn().nvmlDeviceGetClockInfo.pointer(device, type, &mhz);
  return plain(driver, result, mhz);
}

Value memory_of(Driver& driver, Device device, FieldId field) {
  nvml::Memory_v2 memory{};
  memory.version = nvml::kMemoryVersion2;
  const nvml::Return result = driver.fn().nvmlDeviceGetMemoryInfo_v2.pointer(device, &memory);
  const unsigned long long sizes[] = {memory.total, memory.free, memory.used, memory.reserved};
  return plain(driver, result, sizes[field - 250] >> 20);
}

struct DriverField {
  FieldId field;
  unsigned id;
};
constexpr DriverField kDriverFields[] = {
    {140, 82},  {202, 94},  {240, 74},  {241, 75},  {242, 76}, {243, 77}, {244, 78}, {245, 79},
    {246, 80},  {310, 3},   {311, 4},   {312, 5},   {313, 6},  {390, 29}, {391, 30}, {392, 31},
    {393, 143}, {394, 142}, {395, 145}, {396, 144}, {409, 38}, {419, 45}, {429, 52}, {439, 59},
};

Value driver_field(Driver& driver, Device device, unsigned id) {
  nvml::FieldValue value{};
  value.fieldId = id;
  const nvml::Return result = driver.fn().nvmlDeviceGetFieldValues.pointer(device, 1, &value);
  if (result != nvml::kSuccess) return refusal('i', driver.translate(result));
  // The only field whose own result code the engine ignores.
  if (id == nvml::kFieldMemoryTemperature) return integer(value.nvmlReturn == nvml::kSuccess ? value.value.uiVal : 0);
  if (value.nvmlReturn != nvml::kSuccess) return refusal('i', driver.translate(value.nvmlReturn));
  const bool small = value.valueType == nvml::kValueUnsignedInt;
  return integer(small ? value.value.uiVal : value.value.ullVal);
}

Value utilization_of(Driver& driver, Device device, FieldId field) {
  nvml::Utilization busy{};
  const nvml::Return result = driver.fn().nvmlDeviceGetUtilizationRates.pointer(device, &busy);
  return plain(driver, result, field == 203 ? busy.gpu : busy.memory);
}

std::vector<nvml::ProcessInfo> processes_of(Driver& driver, Device device, bool graphics) {
  std::vector<nvml::ProcessInfo> found(1024);
  unsigned count = 1024;
  const auto& list = graphics ? driver.fn().nvmlDeviceGetGraphicsRunningProcesses_v3
                              : driver.fn().nvmlDeviceGetComputeRunningProcesses_v3;
  if (list.pointer(device, &count, found.data()) != nvml::kSuccess) count = 0;
  found.resize(count);
  return found;
}

std::vector<Value> running(Driver& driver, Device device, bool graphics) {
  std::vector<Value> values;
  for (const nvml::ProcessInfo& process : processes_of(driver, device, graphics)) {
    values.push_back(bytes(dcgm::RunningProcess{dcgm::kRunningProcessVersion, process.pid, process.usedGpuMemory}));
  }
  return values;
}

std::vector<Value> accounting(Driver& driver, Device device) {
  unsigned mode = 0;
  nvml::Return result = driver.fn().nvmlDeviceGetAccountingMode.pointer(device, &mode);
  unsigned mig = 0, pending = 0;
  driver.fn().nvmlDeviceGetMigMode.pointer(device, &mig, &pending);
  if (mig == 1) result = nvml::kNotSupported;
  if (result != nvml::kSuccess) return {refusal('b', driver.translate(result))};
  std::vector<unsigned> pids(1024);
  unsigned count = 1024;
  if (driver.fn().nvmlDeviceGetAccountingPids.pointer(device, &count, pids.data()) != nvml::kSuccess) return {};
  pids.resize(count);
  std::vector<Value> values;
  for (const unsigned pid : pids) {
    nvml::AccountingStats stats{};
    if (driver.fn().nvmlDeviceGetAccountingStats.pointer(device, pid, &stats) != nvml::kSuccess) continue;
    values.push_back(
        bytes(dcgm::AccountingStats{dcgm::kAccountingStatsVersion, pid, stats.gpuUtilization, stats.memoryUtilization,
                                    stats.maxMemoryUsage, stats.startTime, stats.isRunning ? 0 : stats.time * 1000}));
  }
  return values;
}

// Replacement for performance monitors: the simulated driver has them only from Hopper on.
Value profiling(Driver& driver, Device device, int gpu_instance, FieldId field) {
  double busy = 0;
  if (gpu_instance >= 0) {
    for (const nvml::ProcessInfo& process : processes_of(driver, device, false)) {
      if (process.gpuInstanceId == static_cast<unsigned>(gpu_instance)) busy = 0.75;
    }
  } else {
    nvml::Utilization rates{};
    if (driver.fn().nvmlDeviceGetUtilizationRates.pointer(device, &rates) == nvml::kSuccess) busy = rates.gpu / 100.0;
  }
  if (field >= 1009) return integer(static_cast<uint64_t>(busy * 1e9));
  constexpr double kOf[] = {1, 0.9, 0.5, 0.4, 0.3, 0.1, 0.2, 0.15};  // 1001 to 1008
  return number(busy * kOf[field - 1001]);
}

Value description(Driver& driver, Device device, unsigned gpu, FieldId field) {
  const FunctionTable& fn = driver.fn();
  char text[nvml::kNameBufferSize] = {};
  unsigned value = 0, pending = 0;
  nvml::PciInfo pci{};
  switch (field) {
    case 50: return text_of(driver, fn.nvmlDeviceGetName.pointer(device, text, sizeof text), text);
    case 52: return integer(gpu);
    case 54: return text_of(driver, fn.nvmlDeviceGetUUID.pointer(device, text, sizeof text), text);
    case 55: return plain(driver, fn.nvmlDeviceGetMinorNumber.pointer(device, &value), gpu);
    case 57: return text_of(driver, fn.nvmlDeviceGetPciInfo_v3.pointer(device, &pci), pci.busId);
    case 67: {
      // The engine reports MIG as off also for a GPU without MIG.
      const nvml::Return result = fn.nvmlDeviceGetMigMode.pointer(device, &value, &pending);
      return integer(result == nvml::kSuccess ? value : 0);
    }
    default: {
      const nvml::Return result = fn.nvmlDeviceGetEnforcedPowerLimit.pointer(device, &value);
      return result == nvml::kSuccess ? number(value / 1000.0) : refusal('d', driver.translate(result));
    }
  }
}

Value reading(Driver& driver, Device device, FieldId field) {
  const FunctionTable& fn = driver.fn();
  unsigned value = 0, period = 0;
  unsigned long long wide = 0;
  nvml::Return result = nvml::kNotSupported;
  switch (field) {
    case 100: return clock_of(driver, device, nvml::kClockSm);
    case 101: return clock_of(driver, device, nvml::kClockMemory);
    case 112: result = fn.nvmlDeviceGetCurrentClocksEventReasons.pointer(device, &wide); break;
    case 150: result = fn.nvmlDeviceGetTemperature.pointer(device, nvml::kTemperatureGpu, &value); break;
    case 155:
      result = fn.nvmlDeviceGetPowerUsage.pointer(device, &value);
      return result == nvml::kSuccess ? number(value / 1000.0) : refusal('d', driver.translate(result));
    case 156: result = fn.nvmlDeviceGetTotalEnergyConsumption.pointer(device, &wide); break;
    case 191: result = fn.nvmlDeviceGetFanSpeed.pointer(device, &value); break;
    case 203:
    case 204: return utilization_of(driver, device, field);
    case 206: result = fn.nvmlDeviceGetEncoderUtilization.pointer(device, &value, &period); break;
    case 207: result = fn.nvmlDeviceGetDecoderUtilization.pointer(device, &value, &period); break;
    default: break;
  }
  return plain(driver, result, value + wide);
}

}  // namespace

std::vector<Value> read_field(Driver& driver, int kind, unsigned id, FieldId field) {
  if (field == 1) {
    char version[nvml::kVersionBufferSize] = {};
    return {text_of(driver, driver.fn().nvmlSystemGetDriverVersion.pointer(version, sizeof version), version)};
  }
  int instance = -1;
  unsigned gpu = id;
  if (kind == dcgm::kEntityGpuInstance) {
    const auto instances = driver.instances();
    if (id >= instances.size()) return {refusal('d', dcgm::kBadParameter)};
    gpu = instances[id].gpu;
    instance = static_cast<int>(instances[id].gpu_instance);
  }
  if (gpu >= driver.gpus()) return {refusal('i', dcgm::kBadParameter)};
  const Device device = driver.device(gpu);
  if (field >= 1001 && field <= 1010) return {profiling(driver, device, instance, field)};
  if (field >= 50 && field < 100) return {description(driver, device, gpu, field)};
  if (field == 164) return {description(driver, device, gpu, field)};
  if (field >= 250 && field <= 253) return {memory_of(driver, device, field)};
  if (field == 205) return accounting(driver, device);
  if (field == 220 || field == 221) return running(driver, device, field == 220);
  if (field == 230) {
    std::vector<Value> values;
    for (const uint64_t xid : driver.new_xids(gpu)) values.push_back(integer(xid));
    return values;
  }
  const auto known = std::find_if(std::begin(kDriverFields), std::end(kDriverFields),
                                  [&](const DriverField& row) { return row.field == field; });
  if (known != std::end(kDriverFields)) return {driver_field(driver, device, known->id)};
  return {reading(driver, device, field)};
}

}  // namespace gpuledger::sim_dcgm
