// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <chrono>
#include <thread>

#include "node.h"

// Xid events and accounting.
using namespace gpuledger::sim;

namespace gpuledger::nvml {
namespace {

constexpr auto kNap = std::chrono::milliseconds(20);

struct Happening {
  unsigned gpu = 0;
  Millis at = 0;
  unsigned long long type = 0;
  unsigned long long data = 0;
};

// All events of the scenario, always in the same order. Those that a command may add come last.
std::vector<Happening> all_happenings(const Scenario& scenario) {
  std::vector<Happening> all;
  for (unsigned gpu = 0; gpu < scenario.gpus.size(); ++gpu) {
    for (const MigSpec& instance : scenario.gpus[gpu].instances) {
      if (instance.from > 0) all.push_back({gpu, instance.from, kEventTypeMigChange, 0});
      if (instance.until < kForever) all.push_back({gpu, instance.until, kEventTypeMigChange, 0});
    }
  }
  for (const XidEvent& xid : scenario.xids) all.push_back({xid.gpu, xid.at, kEventTypeXid, xid.xid});
  return all;
}

// The oldest event that this set waits for and has not received yet.
bool next_event(Node& node, EventSetHandle* set, EventData* event) {
  const std::vector<Happening> all = all_happenings(node.scenario());
  size_t best = all.size();
  for (size_t i = 0; i < all.size(); ++i) {
    const auto wanted = set->gpus.find(all[i].gpu);
    if (wanted == set->gpus.end() || !(wanted->second.types & all[i].type)) continue;
    if (all[i].at <= wanted->second.since || all[i].at > node.now() || set->delivered.count(i)) continue;
    if (best == all.size() || all[i].at < all[best].at) best = i;
  }
  if (best == all.size()) return false;
  set->delivered.insert(best);
  *event = {node.handle(all[best].gpu), all[best].type, all[best].data, kNoInstance, kNoInstance};
  return true;
}

unsigned long long event_types(const Gpu& gpu) {
  return kEventTypeXid | (gpu.spec().model.mig_slices > 0 ? kEventTypeMigChange : 0);
}

Return find_accounting(Gpu& gpu, unsigned pid, const AccountingBook::Record** out) {
  if (gpu.spec().mig) return kNotSupported;
  if (!gpu.accounting().on()) return kNotFound;
  const auto at = gpu.accounting().records().find(pid);
  if (at == gpu.accounting().records().end()) return kNotFound;
  *out = &at->second;
  return kSuccess;
}

unsigned lifetime_percent(uint64_t sum, uint64_t samples) {
  return samples == 0 ? 0 : static_cast<unsigned>(sum / samples / 100);
}

}  // namespace

extern "C" {

Return nvmlEventSetCreate(EventSet* set) {
  return on_driver(__func__, [&](Node& node) {
    if (!set) return kInvalidArgument;
    auto fresh = std::make_unique<EventSetHandle>();
    *set = fresh.get();
    node.event_sets().emplace(*set, std::move(fresh));
    return kSuccess;
  });
}

Return nvmlDeviceRegisterEvents(Device device, unsigned long long types, EventSet set) {
  return on_device(__func__, device, [&](Node& node, Target& target) {
    if (!node.event_sets().count(set)) return kInvalidArgument;
    if (types & ~event_types(*target.gpu)) return kNotSupported;
    if (types != 0)
      set->gpus.try_emplace(target.index, EventSetHandle::Registration{0, node.now()}).first->second.types |= types;
    return kSuccess;
  });
}

Return nvmlDeviceGetSupportedEventTypes(Device device, unsigned long long* types) {
  return on_device(__func__, device, [&](Node&, Target& target) {
    if (!types) return kInvalidArgument;
    *types = event_types(*target.gpu);
    return kSuccess;
  });
}

// In virtual time nothing happens while this waits, so it returns after a short sleep: a caller in a loop neither hangs
// nor spins.
Return nvmlEventSetWait_v2(EventSet set, EventData* event, unsigned timeout_ms) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    bool is_virtual = false;
    const Return result = on_driver(__func__, [&](Node& node) {
      is_virtual = node.clock().is_virtual();
      if (!event || !node.event_sets().count(set)) return kInvalidArgument;
      return next_event(node, set, event) ? kSuccess : kTimeout;
    });
    const auto now = std::chrono::steady_clock::now();
    if (result != kTimeout || now >= until) return result;
    std::this_thread::sleep_for(std::min<std::chrono::steady_clock::duration>(kNap, until - now));
    if (is_virtual) return kTimeout;
  }
}

Return nvmlEventSetFree(EventSet set) {
  std::lock_guard lock(Node::get().mutex());
  return Node::get().event_sets().erase(set) ? kSuccess : kInvalidArgument;
}

Return nvmlDeviceGetAccountingMode(Device device, unsigned* mode) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    if (!mode) return kInvalidArgument;
    *mode = gpu.accounting().on() && !gpu.spec().mig ? 1 : 0;
    return kSuccess;
  });
}

Return nvmlDeviceSetAccountingMode(Device device, unsigned mode) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    if (mode > 1) return kInvalidArgument;
    if (gpu.spec().mig) return kNotSupported;
    if (geteuid() != 0) return kNoPermission;
    gpu.accounting().set(mode == 1);
    return kSuccess;
  });
}

Return nvmlDeviceClearAccountingPids(Device device) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    if (geteuid() != 0) return kNoPermission;
    gpu.accounting().clear();
    return kSuccess;
  });
}

Return nvmlDeviceGetAccountingBufferSize(Device device, unsigned* size) {
  return on_gpu(__func__, device, [&](Node&, Gpu&) {
    if (!size) return kInvalidArgument;
    *size = AccountingBook::kBufferSize;
    return kSuccess;
  });
}

Return nvmlDeviceGetAccountingPids(Device device, unsigned* count, unsigned* pids) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    if (!count) return kInvalidArgument;
    const unsigned capacity = *count;
    *count = gpu.accounting().on() ? static_cast<unsigned>(gpu.accounting().records().size()) : 0;
    if (*count == 0) return kSuccess;
    if (!pids || capacity < *count) return kInsufficientSize;
    for (const auto& [pid, record] : gpu.accounting().records()) *pids++ = pid;
    return kSuccess;
  });
}

Return nvmlDeviceGetAccountingStats(Device device, unsigned pid, AccountingStats* stats) {
  return on_gpu(__func__, device, [&](Node& node, Gpu& gpu) {
    if (!stats) return kInvalidArgument;
    const AccountingBook::Record* record = nullptr;
    const Return found = find_accounting(gpu, pid, &record);
    if (found != kSuccess) return found;
    *stats = AccountingStats{};
    stats->gpuUtilization = lifetime_percent(record->gpu_sum, record->samples);
    stats->memoryUtilization = lifetime_percent(record->memory_sum, record->samples);
    stats->maxMemoryUsage = record->max_memory;
    stats->isRunning = record->end == kForever;
    stats->time = stats->isRunning ? 0 : static_cast<unsigned long long>(record->end - record->start);
    stats->startTime = node.wall_micros(record->start);
    return kSuccess;
  });
}

Return nvmlDeviceGetAccountingStats_v2(Device device, AccountingStats_v2* stats) {
  return on_gpu(__func__, device, [&](Node& node, Gpu& gpu) {
    if (!stats) return kInvalidArgument;
    const AccountingBook::Record* record = nullptr;
    const Return found = find_accounting(gpu, stats->pid, &record);
    if (found != kSuccess) return found;
    stats->isRunning = record->end == kForever;
    stats->gpuUtilization = lifetime_percent(record->gpu_sum, record->samples);
    stats->memoryUtilization = lifetime_percent(record->memory_sum, record->samples);
    stats->maxMemoryUsage = record->max_memory;
    stats->sampleCount = static_cast<unsigned>(record->samples);
    stats->sumGpuUtil = record->gpu_sum;
    stats->sumFbUtil = record->memory_sum;
    stats->time = stats->isRunning ? 0 : static_cast<unsigned long long>(record->end - record->start);
    stats->startTime = node.wall_micros(record->start);
    return kSuccess;
  });
}

}  // extern "C"

}  // namespace gpuledger::nvml
