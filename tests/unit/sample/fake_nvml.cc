// SPDX-License-Identifier: Apache-2.0
#include "fake_nvml.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace gpuledger::nvml {

FakeNvml* FakeNvml::current = nullptr;

namespace {

FakeNvml& fake() {
  return *FakeNvml::current;
}
FakeGpu* gpu_of(Device device) {
  return reinterpret_cast<FakeGpu*>(device);
}
Device handle_of(FakeGpu* gpu) {
  return reinterpret_cast<Device>(gpu);
}

void put_text(char* out, unsigned length, const std::string& text) {
  std::strncpy(out, text.c_str(), length);
  out[length - 1] = '\0';
}

// For the simple readings: the fake's bookkeeping, then the value.
template <typename T>
Return answer(const char* symbol, Device device, T* out, T value) {
  if (Return result = fake().enter(symbol, gpu_of(device)); result != kSuccess) return result;
  *out = value;
  return kSuccess;
}

Return list(const char* symbol, Device device, unsigned* count, void* out, std::vector<ProcessInfo> FakeGpu::*which,
            size_t stride) {
  FakeGpu* gpu = gpu_of(device);
  if (Return result = fake().enter(symbol, gpu); result != kSuccess) return result;
  std::vector<ProcessInfo>& list = gpu->*which;
  const unsigned size = static_cast<unsigned>(list.size());
  for (unsigned i = 0; i < gpu->grows_by; ++i) list.push_back({9000 + size + i, 1, kNoInstance, kNoInstance});
  if (size > *count) {
    *count = size;
    return kInsufficientSize;
  }
  for (size_t i = 0; i < size; ++i) {
    char* entry = static_cast<char*>(out) + i * stride;
    std::memcpy(entry, &list[i], std::min(stride, sizeof(ProcessInfo)));
    if (stride > sizeof(ProcessInfo)) std::memset(entry + sizeof(ProcessInfo), 0, stride - sizeof(ProcessInfo));
  }
  *count = size;
  return kSuccess;
}

// As the H200 does it: means over all samples since, idle ones too; NOT_FOUND when nobody had one.
std::vector<ProcessUtilizationInfo> means(const FakeGpu& gpu, int64_t since) {
  std::map<unsigned, ProcessUtilizationInfo> by_pid;
  unsigned samples = 0;
  constexpr size_t kRing = 71;
  for (size_t i = gpu.ring.size() - std::min(gpu.ring.size(), kRing); i < gpu.ring.size(); ++i) {
    const FakeGpu::Ticket& ticket = gpu.ring[i];
    if (ticket.at_us <= since) continue;
    ++samples;
    if (ticket.pid == 0) continue;
    ProcessUtilizationInfo& mean = by_pid[ticket.pid];
    mean.pid = ticket.pid;
    mean.smUtil += ticket.sm;
    mean.timeStamp = std::max(mean.timeStamp, static_cast<unsigned long long>(ticket.at_us));
  }
  std::vector<ProcessUtilizationInfo> list = gpu.junk;
  for (auto& [pid, mean] : by_pid) {
    mean.smUtil /= samples;
    mean.memUtil = mean.smUtil / 2;
    list.push_back(mean);
  }
  return list;
}

Return newer_utilization(Device device, ProcessesUtilizationInfo* info) {
  FakeGpu* gpu = gpu_of(device);
  if (Return result = fake().enter("nvmlDeviceGetProcessesUtilizationInfo", gpu); result != kSuccess) return result;
  if (info->version != kProcessesUtilizationInfoVersion1) return kArgumentVersionMismatch;
  fake().note_asked(static_cast<int64_t>(info->lastSeenTimeStamp));
  const auto list = means(*gpu, static_cast<int64_t>(info->lastSeenTimeStamp));
  if (list.empty()) return kNotFound;
  const unsigned capacity = info->processSamplesCount;
  info->processSamplesCount = static_cast<unsigned>(list.size());
  if (capacity < list.size()) return kInsufficientSize;
  std::copy(list.begin(), list.end(), info->procUtilArray);
  return kSuccess;
}

Return older_utilization(Device device, ProcessUtilizationSample* samples, unsigned* count, unsigned long long since) {
  FakeGpu* gpu = gpu_of(device);
  if (Return result = fake().enter("nvmlDeviceGetProcessUtilization", gpu); result != kSuccess) return result;
  fake().note_asked(static_cast<int64_t>(since));
  const auto list = means(*gpu, static_cast<int64_t>(since));
  if (list.empty()) return kNotFound;
  const unsigned capacity = *count;
  *count = static_cast<unsigned>(list.size());
  if (capacity < list.size()) return kInsufficientSize;
  for (const ProcessUtilizationInfo& e : list) {
    *samples++ = {e.pid, e.timeStamp, e.smUtil, e.memUtil, e.encUtil, e.decUtil};
  }
  return kSuccess;
}

void add_system_calls(FunctionTable& t) {
  t.nvmlInit_v2.pointer = []() -> Return {
    if (Return result = fake().enter("nvmlInit_v2", nullptr); result != kSuccess) return result;
    const std::lock_guard lock(fake().mutex);
    ++fake().initialized;
    return kSuccess;
  };
  t.nvmlShutdown.pointer = []() -> Return {
    const std::lock_guard lock(fake().mutex);
    --fake().initialized;
    return fake().enter("nvmlShutdown", nullptr);
  };
  t.nvmlSystemGetDriverVersion.pointer = [](char* out, unsigned length) -> Return {
    put_text(out, length, "580.1");
    return fake().enter("nvmlSystemGetDriverVersion", nullptr);
  };
  t.nvmlDeviceGetCount_v2.pointer = [](unsigned* count) -> Return {
    *count = static_cast<unsigned>(fake().gpus.size());
    return fake().enter("nvmlDeviceGetCount_v2", nullptr);
  };
  t.nvmlDeviceGetHandleByIndex_v2.pointer = [](unsigned index, Device* out) -> Return {
    FakeGpu* gpu = fake().gpus.at(index).get();
    return answer("nvmlDeviceGetHandleByIndex_v2", handle_of(gpu), out, handle_of(gpu));
  };
  t.nvmlEventSetCreate.pointer = [](EventSet* set) -> Return {
    if (Return result = fake().enter("nvmlEventSetCreate", nullptr); result != kSuccess) return result;
    ++fake().event_sets;
    *set = reinterpret_cast<EventSet>(FakeNvml::current);
    return kSuccess;
  };
  t.nvmlDeviceRegisterEvents.pointer = [](Device device, unsigned long long types, EventSet) -> Return {
    if (types != kEventTypeXid) return kInvalidArgument;
    if (Return r = fake().enter("nvmlDeviceRegisterEvents", gpu_of(device)); r != kSuccess) return r;
    fake().watched.insert(gpu_of(device));
    return kSuccess;
  };
  t.nvmlEventSetWait_v2.pointer = [](EventSet, EventData* out, unsigned timeout) -> Return {
    if (Return r = fake().enter("nvmlEventSetWait_v2", nullptr); r != kSuccess) return r;
    if (timeout != 0) return kInvalidArgument;
    if (fake().events.empty()) return kTimeout;
    *out = {handle_of(fake().events.front().first), kEventTypeXid, fake().events.front().second, 0, 0};
    fake().events.pop_front();
    return kSuccess;
  };
  t.nvmlEventSetFree.pointer = [](EventSet) -> Return {
    const std::lock_guard lock(fake().mutex);
    --fake().event_sets;
    return fake().enter("nvmlEventSetFree", nullptr);
  };
}

#define FAKE_VALUE(symbol, type, value) \
  t.symbol.pointer = [](Device d, type* out) -> Return { return answer<type>(#symbol, d, out, value); }

void add_readings(FunctionTable& t) {
  FAKE_VALUE(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, gpu_of(d)->energy_mj);
  FAKE_VALUE(nvmlDeviceGetPowerUsage, unsigned, gpu_of(d)->power_mw);
  FAKE_VALUE(nvmlDeviceGetEnforcedPowerLimit, unsigned, gpu_of(d)->limit_mw);
  FAKE_VALUE(nvmlDeviceGetGpuInstanceId, unsigned, gpu_of(d)->gi);
  FAKE_VALUE(nvmlDeviceGetComputeInstanceId, unsigned, gpu_of(d)->ci);
  FAKE_VALUE(nvmlDeviceGetAttributes_v2, DeviceAttributes, gpu_of(d)->attributes);
  FAKE_VALUE(nvmlDeviceGetMaxMigDeviceCount, unsigned, static_cast<unsigned>(gpu_of(d)->migs.size()));
  FAKE_VALUE(nvmlDeviceGetUtilizationRates, Utilization, (Utilization{gpu_of(d)->busy_percent, 20}));
  t.nvmlDeviceGetTemperature.pointer = [](Device d, unsigned, unsigned* out) -> Return {
    return answer("nvmlDeviceGetTemperature", d, out, 55u);
  };
  t.nvmlDeviceGetClockInfo.pointer = [](Device d, unsigned type, unsigned* out) -> Return {
    return answer("nvmlDeviceGetClockInfo", d, out, type == kClockSm ? 1755u : 2619u);
  };
  t.nvmlDeviceGetMemoryInfo.pointer = [](Device d, Memory* out) -> Return {
    const Memory_v2& m = gpu_of(d)->memory;
    return answer("nvmlDeviceGetMemoryInfo", d, out, Memory{m.total, m.free, m.used + m.reserved});
  };
  t.nvmlDeviceGetMemoryInfo_v2.pointer = [](Device d, Memory_v2* out) -> Return {
    if (out->version != kMemoryVersion2) return kArgumentVersionMismatch;
    return answer("nvmlDeviceGetMemoryInfo_v2", d, out, gpu_of(d)->memory);
  };
  t.nvmlDeviceGetMigMode.pointer = [](Device d, unsigned* current, unsigned* pending) -> Return {
    *pending = gpu_of(d)->mig_enabled;
    return answer("nvmlDeviceGetMigMode", d, current, *pending);
  };
  t.nvmlDeviceGetMigDeviceHandleByIndex.pointer = [](Device d, unsigned index, Device* out) -> Return {
    FakeGpu* mig = gpu_of(d)->migs.at(index).get();
    if (!mig) return kNotFound;
    return answer("nvmlDeviceGetMigDeviceHandleByIndex", d, out, handle_of(mig));
  };
  t.nvmlDeviceGetUUID.pointer = [](Device d, char* out, unsigned length) -> Return {
    put_text(out, length, gpu_of(d)->uuid);
    return fake().enter("nvmlDeviceGetUUID", gpu_of(d));
  };
  t.nvmlDeviceGetName.pointer = [](Device d, char* out, unsigned length) -> Return {
    put_text(out, length, gpu_of(d)->name);
    return fake().enter("nvmlDeviceGetName", gpu_of(d));
  };
  t.nvmlDeviceGetSerial.pointer = [](Device d, char* out, unsigned length) -> Return {
    put_text(out, length, gpu_of(d)->serial);
    return fake().enter("nvmlDeviceGetSerial", gpu_of(d));
  };
  t.nvmlDeviceGetVbiosVersion.pointer = [](Device d, char* out, unsigned length) -> Return {
    put_text(out, length, gpu_of(d)->vbios);
    return fake().enter("nvmlDeviceGetVbiosVersion", gpu_of(d));
  };
  t.nvmlDeviceGetPciInfo_v3.pointer = [](Device d, PciInfo* out) -> Return {
    put_text(out->busId, sizeof(out->busId), "00000000:18:00.0");
    return fake().enter("nvmlDeviceGetPciInfo_v3", gpu_of(d));
  };
}

Return field_values(Device device, int count, FieldValue* values) {
  FakeGpu* gpu = gpu_of(device);
  if (Return result = fake().enter("nvmlDeviceGetFieldValues", gpu); result != kSuccess) return result;
  const std::lock_guard lock(fake().mutex);
  for (int i = 0; i < count; ++i) {
    ++fake().asked_fields[values[i].fieldId];
    const auto known = gpu->fields.find(values[i].fieldId);
    values[i].nvmlReturn = kNotSupported;
    if (known == gpu->fields.end()) continue;
    if (known->second.scopeId != values[i].scopeId) {
      values[i].nvmlReturn = kInvalidArgument;
      continue;
    }
    values[i].valueType = known->second.valueType;
    values[i].nvmlReturn = known->second.nvmlReturn;
    values[i].value = known->second.value;
  }
  return kSuccess;
}

void add_vitals(FunctionTable& t) {
  t.nvmlDeviceGetFieldValues.pointer = field_values;
  FAKE_VALUE(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, gpu_of(d)->clock_reasons);
  FAKE_VALUE(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, gpu_of(d)->clock_reasons);
  FAKE_VALUE(nvmlDeviceGetPerformanceState, unsigned, gpu_of(d)->performance_state);
  FAKE_VALUE(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, gpu_of(d)->link_generation);
  FAKE_VALUE(nvmlDeviceGetCurrPcieLinkWidth, unsigned, gpu_of(d)->link_width);
  t.nvmlDeviceGetFanSpeed.pointer = [](Device d, unsigned* out) -> Return {
    if (!gpu_of(d)->fan_percent) return fake().enter("nvmlDeviceGetFanSpeed", gpu_of(d)), kNotSupported;
    return answer("nvmlDeviceGetFanSpeed", d, out, *gpu_of(d)->fan_percent);
  };
  t.nvmlDeviceGetPcieThroughput.pointer = [](Device d, unsigned counter, unsigned* out) -> Return {
    return answer("nvmlDeviceGetPcieThroughput", d, out, gpu_of(d)->pcie_kilobytes * (counter + 1));
  };
  t.nvmlDeviceGetEncoderUtilization.pointer = [](Device d, unsigned* out, unsigned* period) -> Return {
    *period = 100'000;
    return answer("nvmlDeviceGetEncoderUtilization", d, out, 12u);
  };
  t.nvmlDeviceGetDecoderUtilization.pointer = [](Device d, unsigned* out, unsigned* period) -> Return {
    *period = 100'000;
    return answer("nvmlDeviceGetDecoderUtilization", d, out, 101u);
  };
}

// Of the GPU's own monitors; of an instance by its number.
Return take_gpm_sample(const char* symbol, FakeGpu* gpu, const FakeGpu* of, GpmSample sample) {
  if (Return result = fake().enter(symbol, gpu); result != kSuccess) return result;
  if (!of) return kInvalidArgument;
  *reinterpret_cast<FakeGpmSample*>(sample) = {of, fake().clock->now().steady};
  return kSuccess;
}

// As the H200 does it: 0 and NaN for samples that are too close.
Return gpm_metrics(GpmMetricsGet* request) {
  if (Return result = fake().enter("nvmlGpmMetricsGet", nullptr); result != kSuccess) return result;
  if (request->version != kGpmMetricsGetVersion) return kArgumentVersionMismatch;
  const auto* from = reinterpret_cast<FakeGpmSample*>(request->sample1);
  const auto* to = reinterpret_cast<FakeGpmSample*>(request->sample2);
  if (!from->of || from->of != to->of) return kInvalidArgument;
  for (unsigned i = 0; i < request->numMetrics; ++i) {
    GpmMetric& metric = request->metrics[i];
    const auto known = to->of->activity.find(metric.metricId);
    metric.nvmlReturn = known == to->of->activity.end() ? kNotSupported : kSuccess;
    metric.value = metric.nvmlReturn == kSuccess ? known->second : 0;
    if (to->at - from->at < fake().gpm_refresh) metric.value = metric.metricId == kGpmGraphics ? 0 : std::nan("");
  }
  return kSuccess;
}

void add_gpm(FunctionTable& t) {
  t.nvmlGpmQueryDeviceSupport.pointer = [](Device d, GpmSupport* out) -> Return {
    if (out->version != kGpmSupportVersion) return kArgumentVersionMismatch;
    return answer("nvmlGpmQueryDeviceSupport", d, &out->isSupportedDevice, gpu_of(d)->gpm ? 1u : 0u);
  };
  t.nvmlGpmSampleAlloc.pointer = [](GpmSample* out) -> Return {
    const std::lock_guard lock(fake().mutex);
    auto* sample = new FakeGpmSample;
    fake().gpm_samples.insert(sample);
    *out = reinterpret_cast<GpmSample>(sample);
    return fake().enter("nvmlGpmSampleAlloc", nullptr);
  };
  t.nvmlGpmSampleFree.pointer = [](GpmSample sample) -> Return {
    const std::lock_guard lock(fake().mutex);
    if (fake().gpm_samples.erase(reinterpret_cast<FakeGpmSample*>(sample)) == 0) return kInvalidArgument;
    delete reinterpret_cast<FakeGpmSample*>(sample);
    return fake().enter("nvmlGpmSampleFree", nullptr);
  };
  t.nvmlGpmSampleGet.pointer = [](Device d, GpmSample sample) -> Return {
    return take_gpm_sample("nvmlGpmSampleGet", gpu_of(d), gpu_of(d), sample);
  };
  t.nvmlGpmMigSampleGet.pointer = [](Device d, unsigned instance, GpmSample sample) -> Return {
    const FakeGpu* of = nullptr;
    for (const auto& mig : gpu_of(d)->migs) of = mig && mig->gi == instance ? mig.get() : of;
    return take_gpm_sample("nvmlGpmMigSampleGet", gpu_of(d), of, sample);
  };
  t.nvmlGpmMetricsGet.pointer = gpm_metrics;
}

void add_accounting(FunctionTable& t) {
  FAKE_VALUE(nvmlDeviceGetAccountingMode, unsigned, gpu_of(d)->accounting_on ? 1 : 0);
  t.nvmlDeviceGetAccountingPids.pointer = [](Device d, unsigned* count, unsigned* pids) -> Return {
    if (Return result = fake().enter("nvmlDeviceGetAccountingPids", gpu_of(d)); result != kSuccess) return result;
    const unsigned capacity = *count;
    *count = static_cast<unsigned>(gpu_of(d)->accounting.size());
    if (capacity < *count) return kInsufficientSize;
    for (const auto& [pid, stats] : gpu_of(d)->accounting) *pids++ = pid;
    return kSuccess;
  };
  t.nvmlDeviceGetAccountingStats.pointer = [](Device d, unsigned pid, AccountingStats* out) -> Return {
    const auto stats = gpu_of(d)->accounting.find(pid);
    if (stats == gpu_of(d)->accounting.end()) return kNotFound;
    return answer("nvmlDeviceGetAccountingStats", d, out, stats->second);
  };
}

#define FAKE_LIST(kind, member)                                                                                 \
  t.nvmlDeviceGet##kind##RunningProcesses_v3.pointer = [](Device d, unsigned* n, ProcessInfo* out) -> Return {  \
    return list("nvmlDeviceGet" #kind "RunningProcesses_v3", d, n, out, &FakeGpu::member, gpu_of(d)->stride);   \
  };                                                                                                            \
  t.nvmlDeviceGet##kind##RunningProcesses_v2.pointer = [](Device d, unsigned* n, ProcessInfo* out) -> Return {  \
    return list("nvmlDeviceGet" #kind "RunningProcesses_v2", d, n, out, &FakeGpu::member, sizeof(ProcessInfo)); \
  };                                                                                                            \
  t.nvmlDeviceGet##kind##RunningProcesses.pointer = [](Device d, unsigned* n, ProcessInfo_v1* out) -> Return {  \
    return list("nvmlDeviceGet" #kind "RunningProcesses", d, n, out, &FakeGpu::member, sizeof(ProcessInfo_v1)); \
  }

void add_processes(FunctionTable& t) {
  FAKE_LIST(Compute, compute);
  FAKE_LIST(Graphics, graphics);
  FAKE_LIST(MPSCompute, mps);
  t.nvmlDeviceGetProcessesUtilizationInfo.pointer = newer_utilization;
  t.nvmlDeviceGetProcessUtilization.pointer = older_utilization;
}

}  // namespace

FakeNvml::FakeNvml() {
  current = this;
}
FakeNvml::~FakeNvml() {
  current = nullptr;
}

FakeGpu& FakeNvml::add_gpu(const std::string& uuid) {
  gpus.push_back(std::make_shared<FakeGpu>());
  gpus.back()->uuid = uuid;
  return *gpus.back();
}

FunctionTable FakeNvml::table() const {
  FunctionTable t;
  add_system_calls(t);
  add_readings(t);
  add_vitals(t);
  add_processes(t);
  add_gpm(t);
  add_accounting(t);
#define NVML_FUNCTION(need, result, symbol, parameters) \
  if (missing.contains(#symbol)) t.symbol.pointer = nullptr;
#include "sample/nvml/nvml_functions.inc"
#undef NVML_FUNCTION
  return t;
}

LibraryLoader FakeNvml::loader() {
  return [this]() -> Result<Library> {
    ++loads;
    if (!loadable) return Error{Code::kNotFound, "no library"};
    Library library;
    library.functions = table();
    return library;
  };
}

int FakeNvml::called(const std::string& symbol) {
  const std::lock_guard lock(mutex);
  const auto it = calls.find(symbol);
  return it == calls.end() ? 0 : it->second;
}

void FakeNvml::note_asked(int64_t since) {
  const std::lock_guard lock(mutex);
  asked_since.push_back(since);
}

void FakeNvml::hang(const FakeGpu& gpu, const std::string& symbol) {
  const std::lock_guard lock(mutex);
  hang_at_ = {&gpu, symbol};
}

void FakeNvml::let_go() {
  const std::lock_guard lock(mutex);
  hang_at_ = {};
  changed_.notify_all();
}

bool FakeNvml::wait_for_hang() {
  std::unique_lock lock(mutex);
  return changed_.wait_for(lock, std::chrono::minutes(1), [this] { return hangs_; });
}

Return FakeNvml::enter(const char* symbol, const FakeGpu* gpu) {
  std::unique_lock lock(mutex);
  ++calls[symbol];
  if (hang_at_.first == gpu && hang_at_.second == symbol) {
    hangs_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return hang_at_.first == nullptr; });
    hangs_ = false;
  }
  if (const auto it = fails.find(symbol); it != fails.end()) return it->second;
  if (!gpu) return kSuccess;
  for (const char* key : {symbol, "*"}) {
    if (const auto it = gpu->fails.find(key); it != gpu->fails.end()) return it->second;
  }
  return kSuccess;
}

}  // namespace gpuledger::nvml
