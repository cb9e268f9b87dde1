// SPDX-License-Identifier: Apache-2.0
#include "sample/nvml/nvml_processes.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace gpuledger::nvml {

namespace {

constexpr int kMostProcessTries = 4;
constexpr unsigned kFirstProcessCapacity = 64;
constexpr unsigned kMostProcesses = 1u << 16;
constexpr unsigned kMostInstanceNumber = 1024;  // far above any MIG GPU's
constexpr unsigned long long kMostMemory = 1ull << 50;

ProcessInfo entry_at(std::span<const std::byte> buffer, size_t stride, size_t i) {
  ProcessInfo entry{0, 0, kNoInstance, kNoInstance};
  std::memcpy(&entry, buffer.data() + i * stride, std::min(stride, sizeof(entry)));
  return entry;
}

bool makes_sense(std::span<const std::byte> buffer, size_t stride, size_t count) {
  const auto instance_ok = [](unsigned id) { return id == kNoInstance || id < kMostInstanceNumber; };
  for (size_t i = 0; i < count; ++i) {
    const ProcessInfo entry = entry_at(buffer, stride, i);
    if (entry.pid > kMostPid) return false;
    if (entry.usedGpuMemory != kValueNotAvailable && entry.usedGpuMemory > kMostMemory) return false;
    if (!instance_ok(entry.gpuInstanceId) || !instance_ok(entry.computeInstanceId)) return false;
  }
  return true;
}

// 0: none plausible.
size_t entry_stride(std::span<const std::byte> buffer, size_t count) {
  const auto last = std::find_if(buffer.rbegin(), buffer.rend(), [](std::byte b) { return b != kPoison; });
  const size_t written = static_cast<size_t>(buffer.rend() - last);
  if (written <= 16 * count) return makes_sense(buffer, 16, count) ? 16 : 0;
  if (written <= 24 * count) return makes_sense(buffer, 24, count) ? 24 : 0;
  // More than 24 bytes per entry: wider entries, or a driver that clears the rest.
  if (makes_sense(buffer, 32, count)) return 32;
  return makes_sense(buffer, 24, count) ? 24 : 0;
}

using ListFunction = Function<Return(Device, unsigned*, ProcessInfo*)>;
using ListFunction_v1 = Function<Return(Device, unsigned*, ProcessInfo_v1*)>;

struct ListCall {
  const ListFunction& v3;
  const ListFunction& v2;
  const ListFunction_v1& v1;
};

Return fill(Session& session, const ListCall& list, Device device, unsigned* count, std::byte* buffer) {
  const unsigned capacity = *count;
  Return result = kFunctionNotFound;
  // A symbol may exist and still return FUNCTION_NOT_FOUND: a newer library with an older kernel module.
  for (const ListFunction* function : {&list.v3, &list.v2}) {
    result = session.call(*function, device, count, reinterpret_cast<ProcessInfo*>(buffer));
    if (result != kFunctionNotFound) return result;
    *count = capacity;
  }
  return session.call(list.v1, device, count, reinterpret_cast<ProcessInfo_v1*>(buffer));
}

Result<std::vector<ListedProcess>> read_list(Session& session, const ListCall& list, Device device, bool mig) {
  unsigned capacity = kFirstProcessCapacity;
  Return result = kInsufficientSize;
  // Processes may start between two tries, so the requested size may be outdated: take more.
  for (int attempt = 0; attempt < kMostProcessTries && result == kInsufficientSize; ++attempt) {
    std::vector<std::byte> buffer(capacity * kWidestEntry, kPoison);
    unsigned count = capacity;
    result = fill(session, list, device, &count, buffer.data());
    if (result == kSuccess) return parse_process_entries(buffer, std::min(count, capacity), mig);
    capacity = std::min(kMostProcesses, std::max(count + count / 4 + 16, capacity * 2));
  }
  return Error{code_of(result), describe(list.v3.name, result)};
}

using ProcessMap = std::map<std::pair<Pid, std::optional<MigId>>, ProcessSample>;

// The lists overlap (a process with both kinds of context, an MPS client): same memory, not a sum.
ProcessSample& merge(ProcessMap& processes, const ListedProcess& listed) {
  ProcessSample& process = processes[{listed.pid, listed.mig}];
  process.pid = listed.pid;
  process.mig = listed.mig;
  process.listed = true;
  if (listed.memory) process.memory = std::max(process.memory.value_or(Bytes{0}), *listed.memory);
  return process;
}

Status read_lists_of(Session& session, Device device, bool mig, std::optional<MigId> instance, ProcessMap& processes) {
  const FunctionTable& fn = session.fn;
  struct {
    ListCall call;
    bool ProcessSample::*mark;
  } const lists[] = {
      {{fn.nvmlDeviceGetComputeRunningProcesses_v3, fn.nvmlDeviceGetComputeRunningProcesses_v2,
        fn.nvmlDeviceGetComputeRunningProcesses},
       &ProcessSample::compute},
      {{fn.nvmlDeviceGetGraphicsRunningProcesses_v3, fn.nvmlDeviceGetGraphicsRunningProcesses_v2,
        fn.nvmlDeviceGetGraphicsRunningProcesses},
       &ProcessSample::graphics},
      {{fn.nvmlDeviceGetMPSComputeRunningProcesses_v3, fn.nvmlDeviceGetMPSComputeRunningProcesses_v2,
        fn.nvmlDeviceGetMPSComputeRunningProcesses},
       &ProcessSample::mps_client},
  };
  for (const auto& list : lists) {
    Result<std::vector<ListedProcess>> entries = read_list(session, list.call, device, mig);
    if (!entries.ok()) {
      if (entries.error().code == Code::kNotSupported) continue;
      return entries.error();
    }
    for (ListedProcess& entry : *entries) {
      if (!entry.mig) entry.mig = instance;
      merge(processes, entry).*(list.mark) = true;
    }
  }
  return ok_status();
}

}  // namespace

Result<std::vector<ListedProcess>> parse_process_entries(std::span<const std::byte> buffer, size_t count, bool mig) {
  std::vector<ListedProcess> processes;
  if (count == 0) return processes;
  const size_t stride = count * kWidestEntry <= buffer.size() ? entry_stride(buffer, count) : 0;
  if (stride == 0) return Error{Code::kMalformed, "a process list of no known layout"};
  for (size_t i = 0; i < count; ++i) {
    const ProcessInfo entry = entry_at(buffer, stride, i);
    if (entry.pid == 0) continue;
    ListedProcess process;
    process.pid = entry.pid;
    if (entry.usedGpuMemory != kValueNotAvailable) process.memory = Bytes{entry.usedGpuMemory};
    // Graphics contexts on a MIG GPU have no compute instance.
    if (mig && entry.gpuInstanceId != kNoInstance) {
      process.mig = MigId{entry.gpuInstanceId, entry.computeInstanceId == kNoInstance ? 0 : entry.computeInstanceId};
    }
    processes.push_back(process);
  }
  return processes;
}

Result<std::vector<ProcessSample>> read_process_lists(Session& session, Device gpu, bool mig,
                                                      const std::vector<MigDevice>& migs) {
  ProcessMap processes;
  Status status = read_lists_of(session, gpu, mig, std::nullopt, processes);
  const bool refused = !status.ok() && status.error().code == Code::kPermission;
  if (!migs.empty() && (refused || (status.ok() && processes.empty()))) {
    bool any = false;
    for (const MigDevice& device : migs) {
      Status part = read_lists_of(session, device.handle, mig, device.instance.id, processes);
      any = any || part.ok();
      if (!part.ok()) session.call.count_failure(code_name(part.error().code));
    }
    if (any) status = ok_status();
  }
  if (!status.ok()) {
    // MIG: an answer that is expected without rights.
    if (!(mig && refused)) session.call.count_failure(code_name(status.error().code));
    return status.error();
  }
  std::vector<ProcessSample> list;
  list.reserve(processes.size());
  for (auto& [key, process] : processes) list.push_back(process);
  return list;
}

}  // namespace gpuledger::nvml
