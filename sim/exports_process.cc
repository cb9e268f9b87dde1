// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "node.h"
#include "process_use.h"

// Process lists, utilization per process.
using namespace gpuledger::sim;

namespace gpuledger::nvml {
namespace {

enum class List { kCompute, kGraphics, kMps };
constexpr unsigned kUtilizationCapacity = 100;  // what the real call asks for when given no buffer

std::vector<Context> listed(const Target& target, List list) {
  std::vector<Context> found;
  for (const Context& context : target.gpu->state().contexts) {
    const bool wanted = list == List::kCompute    ? context.compute
                        : list == List::kGraphics ? context.graphics
                                                  : context.mps_client;
    const bool here = !target.instance || (context.gpu_instance == target.instance->gpu_instance &&
                                           context.compute_instance == target.instance->compute_instance);
    if (wanted && here) found.push_back(context);
  }
  return found;
}

ProcessDetail entry_of(const Context& context) {
  ProcessDetail entry{};
  entry.pid = context.pid;
  entry.usedGpuMemory = context.memory.value_or(kValueNotAvailable);
  entry.gpuInstanceId = context.gpu_instance.value_or(kNoInstance);
  entry.computeInstanceId = context.compute_instance.value_or(kNoInstance);
  return entry;
}

// Entries of 16, 24 and 32 bytes begin alike, so one writer serves every version of the call.
Return list_processes(const char* call, Device device, List list, size_t entry_size, unsigned* count, void* out) {
  return on_device(call, device, [&](Node& node, Target& target) {
    if (!count) return kInvalidArgument;
    const std::vector<Context> found = listed(target, list);
    const auto size = static_cast<unsigned>(found.size());
    const unsigned capacity = *count;
    *count = size;
    if (size > 0 && (!out || capacity == 0)) return kInsufficientSize;
    // The quirk: a process came after the call for the size and left again before the call for the list.
    const unsigned needed = size > 0 && node.scenario().quirks.list_grows_between_calls ? size + 1 : size;
    if (capacity < needed) {
      *count = needed;
      return kInsufficientSize;
    }
    for (unsigned i = 0; i < size; ++i) {
      const ProcessDetail entry = entry_of(found[i]);
      std::memcpy(static_cast<char*>(out) + i * entry_size, &entry, entry_size);
    }
    return kSuccess;
  });
}

// Early R535 wrote longer entries under the name _v3.
size_t v3_entry_size() {
  std::lock_guard lock(Node::get().mutex());
  return Node::get().loaded() ? Node::get().scenario().quirks.process_entry_size : sizeof(ProcessInfo);
}

UseReport report_use(Node& node, const Gpu& gpu, unsigned long long last_seen) {
  const unsigned long long epoch = node.wall_micros(0);
  const Millis after = last_seen < epoch ? -1 : static_cast<Millis>((last_seen - epoch) / 1000);
  UseReport report = use_since(gpu.state(), after);
  if (node.scenario().quirks.utilization_garbage && report.tickets > 0) {
    const Millis newest = gpu.state().tickets.newest().t;
    report.processes.push_back({3999999, newest, 2166000ull * report.tickets, 0, 0, 0});
    if (!gpu.state().contexts.empty()) {
      report.processes.push_back({gpu.state().contexts[0].pid, newest, 100100ull * report.tickets, 0, 0, 0});
    }
  }
  return report;
}

}  // namespace

extern "C" {

Return nvmlDeviceGetComputeRunningProcesses(Device device, unsigned* count, ProcessInfo_v1* processes) {
  return list_processes(__func__, device, List::kCompute, sizeof(ProcessInfo_v1), count, processes);
}

Return nvmlDeviceGetComputeRunningProcesses_v2(Device device, unsigned* count, ProcessInfo* processes) {
  return list_processes(__func__, device, List::kCompute, sizeof(ProcessInfo), count, processes);
}

Return nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, ProcessInfo* processes) {
  return list_processes(__func__, device, List::kCompute, v3_entry_size(), count, processes);
}

Return nvmlDeviceGetGraphicsRunningProcesses(Device device, unsigned* count, ProcessInfo_v1* processes) {
  return list_processes(__func__, device, List::kGraphics, sizeof(ProcessInfo_v1), count, processes);
}

Return nvmlDeviceGetGraphicsRunningProcesses_v2(Device device, unsigned* count, ProcessInfo* processes) {
  return list_processes(__func__, device, List::kGraphics, sizeof(ProcessInfo), count, processes);
}

Return nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, unsigned* count, ProcessInfo* processes) {
  return list_processes(__func__, device, List::kGraphics, v3_entry_size(), count, processes);
}

Return nvmlDeviceGetMPSComputeRunningProcesses(Device device, unsigned* count, ProcessInfo_v1* processes) {
  return list_processes(__func__, device, List::kMps, sizeof(ProcessInfo_v1), count, processes);
}

Return nvmlDeviceGetMPSComputeRunningProcesses_v2(Device device, unsigned* count, ProcessInfo* processes) {
  return list_processes(__func__, device, List::kMps, sizeof(ProcessInfo), count, processes);
}

Return nvmlDeviceGetMPSComputeRunningProcesses_v3(Device device, unsigned* count, ProcessInfo* processes) {
  return list_processes(__func__, device, List::kMps, v3_entry_size(), count, processes);
}

Return nvmlDeviceGetRunningProcessDetailList(Device device, ProcessDetailList* list) {
  return on_device(__func__, device, [&](Node&, Target& target) {
    if (!list || list->mode > 2) return kInvalidArgument;
    if (list->version != struct_version(sizeof(ProcessDetailList), 1)) return kArgumentVersionMismatch;
    if (!target.gpu->spec().model.gpm) return kNotSupported;  // Hopper and newer, as GPM
    const std::vector<Context> found = listed(target, static_cast<List>(list->mode));
    const auto size = static_cast<unsigned>(found.size());
    const unsigned capacity = list->numProcArrayEntries;
    list->numProcArrayEntries = size;
    if (size > 0 && (!list->procArray || capacity < size)) return kInsufficientSize;
    for (unsigned i = 0; i < size; ++i) list->procArray[i] = entry_of(found[i]);
    return kSuccess;
  });
}

Return nvmlDeviceGetProcessUtilization(Device device, ProcessUtilizationSample* samples, unsigned* count,
                                       unsigned long long last_seen) {
  return on_device(__func__, device, [&](Node& node, Target& target) {
    if (!count) return kInvalidArgument;
    if (target.gpu->spec().mig) return kNotSupported;
    if (!samples) {
      *count = kUtilizationCapacity;
      return kInsufficientSize;
    }
    const UseReport report = report_use(node, *target.gpu, last_seen);
    const auto size = static_cast<unsigned>(report.processes.size());
    if (size == 0) return kNotFound;
    if (*count < size) {
      *count = size;
      return kInsufficientSize;
    }
    *count = size;
    for (const ProcessUse& use : report.processes) {
      *samples++ = {use.pid,
                    node.wall_micros(use.newest),
                    percent_up(use.sm, report.tickets),
                    percent_up(use.memory, report.tickets),
                    percent_up(use.encoder, report.tickets),
                    percent_up(use.decoder, report.tickets)};
    }
    return kSuccess;
  });
}

Return nvmlDeviceGetProcessesUtilizationInfo(Device device, ProcessesUtilizationInfo* info) {
  return on_device(__func__, device, [&](Node& node, Target& target) {
    if (!info) return kInvalidArgument;
    if (info->version != kProcessesUtilizationInfoVersion1) return kArgumentVersionMismatch;
    if (target.gpu->spec().mig) return kNotSupported;
    if (!info->procUtilArray) {
      info->processSamplesCount = kUtilizationCapacity;
      return kInsufficientSize;
    }
    const UseReport report = report_use(node, *target.gpu, info->lastSeenTimeStamp);
    const auto size = static_cast<unsigned>(report.processes.size());
    if (size == 0) return kNotFound;
    const unsigned capacity = info->processSamplesCount;
    info->processSamplesCount = size;
    if (capacity < size) return kInsufficientSize;
    ProcessUtilizationInfo* out = info->procUtilArray;
    for (const ProcessUse& use : report.processes) {
      *out++ = {node.wall_micros(use.newest),
                use.pid,
                percent_down(use.sm, report.tickets),
                percent_down(use.memory, report.tickets),
                percent_down(use.encoder, report.tickets),
                percent_down(use.decoder, report.tickets),
                0,
                0};
    }
    return kSuccess;
  });
}

}  // extern "C"

}  // namespace gpuledger::nvml
