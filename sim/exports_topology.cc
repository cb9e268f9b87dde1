// SPDX-License-Identifier: Apache-2.0
#include "field_values.h"

// The place of a GPU: its CPUs and memory, the distance to other GPUs, its NVLink fabric. The node has two sockets; the
// first half of its GPUs is on the first.
using namespace gpuledger::sim;

namespace gpuledger::nvml {
namespace {

constexpr unsigned kCpusPerSocket = 64;
constexpr unsigned kBitsPerWord = 8 * sizeof(unsigned long);
static_assert(kCpusPerSocket == kBitsPerWord);  // a socket is a word of the mask
constexpr unsigned kHopper = 9;

// Of the health of a fabric, each in two bits: bandwidth not degraded, no route under recovery, none unhealthy, no
// access timeout; then four bits: configured as it should be.
constexpr unsigned kFabricHealthy = 2 | 2 << 2 | 2 << 4 | 2 << 6 | 1 << 8;
constexpr unsigned char kFabricSummaryHealthy = 1;

unsigned socket_of(const Node& node, unsigned gpu) {
  return gpu < (node.scenario().gpus.size() + 1) / 2 ? 0 : 1;
}

unsigned distance(const Node& node, unsigned one, unsigned other) {
  return socket_of(node, one) == socket_of(node, other) ? kTopologyNode : kTopologySystem;
}

// Clients ask for a list of GPUs twice: without a buffer the call returns only their number.
template <typename Wanted>
Return list_gpus(Node& node, unsigned* count, Device* devices, Wanted wanted) {
  if (!count) return kInvalidArgument;
  unsigned found = 0;
  for (unsigned i = 0; i < node.scenario().gpus.size(); ++i) {
    if (!wanted(i)) continue;
    if (devices && found < *count) devices[found] = node.handle(i);
    ++found;
  }
  *count = devices ? std::min(*count, found) : found;
  return kSuccess;
}

Return mask(unsigned bit_word, unsigned long bits, unsigned words, unsigned long* out) {
  if (!out || words == 0) return kInvalidArgument;
  std::fill(out, out + words, 0);
  if (bit_word < words) out[bit_word] = bits;
  return kSuccess;
}

Return cpu_mask(const char* call, Device device, unsigned words, unsigned long* cpus) {
  return on_whole_gpu(
      call, device, [&](Node& node, Target& target) { return mask(socket_of(node, target.index), ~0ul, words, cpus); });
}

Return fabric(Node& node, const Gpu& gpu, GpuFabricInfo* info) {
  if (gpu.spec().model.architecture < kHopper) return kNotSupported;
  *info = {};
  info->state = active_nvlinks(node, gpu) ? kFabricCompleted : kFabricNotSupported;
  return kSuccess;
}

}  // namespace

extern "C" {

Return nvmlDeviceGetTopologyCommonAncestor(Device one, Device other, unsigned* level) {
  return on_whole_gpu(__func__, one, [&](Node& node, Target& target) {
    const DeviceHandle* second = node.find(other);
    if (!second || !level) return kInvalidArgument;
    if (second->gpu == target.index) return kNotSupported;
    *level = distance(node, target.index, second->gpu);
    return kSuccess;
  });
}

Return nvmlDeviceGetTopologyNearestGpus(Device device, unsigned level, unsigned* count, Device* devices) {
  return on_whole_gpu(__func__, device, [&](Node& node, Target& target) {
    return list_gpus(node, count, devices,
                     [&](unsigned i) { return i != target.index && distance(node, target.index, i) == level; });
  });
}

Return nvmlSystemGetTopologyGpuSet(unsigned cpu, unsigned* count, Device* devices) {
  return on_driver(__func__, [&](Node& node) {
    return list_gpus(node, count, devices, [&](unsigned i) { return socket_of(node, i) == cpu / kCpusPerSocket; });
  });
}

Return nvmlDeviceGetCpuAffinity(Device device, unsigned words, unsigned long* cpus) {
  return cpu_mask(__func__, device, words, cpus);
}

Return nvmlDeviceGetCpuAffinityWithinScope(Device device, unsigned words, unsigned long* cpus, unsigned) {
  return cpu_mask(__func__, device, words, cpus);
}

Return nvmlDeviceGetMemoryAffinity(Device device, unsigned words, unsigned long* nodes, unsigned) {
  return on_whole_gpu(__func__, device, [&](Node& node, Target& target) {
    return mask(0, 1ul << socket_of(node, target.index), words, nodes);
  });
}

Return nvmlDeviceGetNvLinkState(Device device, unsigned link, unsigned* active) {
  return on_gpu(__func__, device, [&](Node& node, Gpu& gpu) {
    const unsigned links = gpu.spec().model.nvlinks;
    if (links == 0) return kNotSupported;
    if (!active || link >= links) return kInvalidArgument;
    *active = link < active_nvlinks(node, gpu) ? kFeatureEnabled : 0;
    return kSuccess;
  });
}

// All links lead into switches, which have no address of their own here.
Return nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned link, PciInfo* pci) {
  return on_gpu(__func__, device, [&](Node& node, Gpu& gpu) {
    const unsigned links = gpu.spec().model.nvlinks;
    if (links == 0) return kNotSupported;
    if (!pci || link >= active_nvlinks(node, gpu)) return kInvalidArgument;
    return kNotSupported;
  });
}

Return nvmlDeviceGetGpuFabricInfo(Device device, GpuFabricInfo* info) {
  return on_gpu(__func__, device,
                [&](Node& node, Gpu& gpu) { return info ? fabric(node, gpu, info) : kInvalidArgument; });
}

Return nvmlDeviceGetGpuFabricInfoV(Device device, GpuFabricInfo_v3* info) {
  return on_gpu(__func__, device, [&](Node& node, Gpu& gpu) {
    if (!info) return kInvalidArgument;
    const unsigned version = info->version;
    if (version != kGpuFabricInfoVersion2 && version != kGpuFabricInfoVersion3) return kArgumentVersionMismatch;
    const Return result = fabric(node, gpu, &info->info);
    if (result != kSuccess) return result;
    const bool joined = info->info.state == kFabricCompleted;
    info->healthMask = joined ? kFabricHealthy : 0;
    // A caller of version 2 has no room for the summary.
    if (version == kGpuFabricInfoVersion3) info->healthSummary = joined ? kFabricSummaryHealthy : 0;
    return kSuccess;
  });
}

}  // extern "C"

}  // namespace gpuledger::nvml
