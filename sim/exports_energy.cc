// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>

#include "node.h"

// Energy, power, samples, GPM.
using namespace gpuledger::sim;

namespace gpuledger::nvml {
namespace {

enum SampleType : unsigned { kPowerSamples, kGpuSamples, kMemorySamples, kEncoderSamples, kDecoderSamples };

// What a call answers: the truth, or what the scenario has it say.
uint64_t answer_of(const char* call, const Node& node, unsigned gpu, uint64_t truth) {
  for (const FalseAnswer& answer : node.scenario().false_answers) {
    const bool here = answer.call == call && answer.gpu.value_or(gpu) == gpu;
    if (here && answer.from <= node.now() && node.now() < answer.until) return answer.value;
  }
  return truth;
}

unsigned limit_mw(const Gpu& gpu) {
  return static_cast<unsigned>(std::lround(gpu.spec().model.limit_watts * 1000));
}

Return limit(const char* call, Device device, unsigned* milliwatts) {
  return on_gpu(call, device, [&](Node&, Gpu& gpu) {
    if (!milliwatts) return kInvalidArgument;
    *milliwatts = limit_mw(gpu);
    return kSuccess;
  });
}

unsigned ticket_value(const Ticket& ticket, unsigned type) {
  switch (type) {
    case kGpuSamples: return ticket.sm / 100;
    case kMemorySamples: return ticket.memory / 100;
    case kEncoderSamples: return ticket.encoder / 100;
    default: return ticket.decoder / 100;
  }
}

Return collect_samples(Node& node, const Gpu& gpu, unsigned type, unsigned long long last_seen,
                       std::vector<Sample>* out) {
  auto add = [&](Millis t, unsigned value) {
    Sample sample{};
    sample.timeStamp = node.wall_micros(t);
    sample.sampleValue.uiVal = value;
    if (sample.timeStamp > last_seen) out->push_back(sample);
  };
  if (type == kPowerSamples) {
    for (const PowerSample& sample : gpu.state().power) add(sample.t, sample.mw);
  } else if (type <= kDecoderSamples) {
    if (gpu.spec().mig) return kNotSupported;
    for (const Ticket& ticket : gpu.state().tickets) add(ticket.t, ticket_value(ticket, type));
  } else {
    return kNotSupported;
  }
  return out->empty() ? kNotFound : kSuccess;
}

// GPM's numbers for the activities that are simulated; the other tensor pipes are always 0.
struct GpmName {
  unsigned id;
  int index;  // -1: always 0
  const char* name;
  double scale = 1;  // of percent; the traffic in MiB per second follows the memory's activity
};
constexpr GpmName kGpmNames[] = {
    {1, kGfx, "GRAPHICS_UTIL"},
    {2, kSm, "SM_UTIL"},
    {3, kOccupancy, "SM_OCCUPANCY"},
    {4, kInteger, "INTEGER_UTIL"},
    {5, kTensor, "ANY_TENSOR_UTIL"},
    {6, -1, "DFMA_TENSOR_UTIL"},
    {7, kTensor, "HMMA_TENSOR_UTIL"},
    {8, -1, "DMMA_TENSOR_UTIL"},
    {9, -1, "IMMA_TENSOR_UTIL"},
    {10, kDram, "DRAM_BW_UTIL"},
    {11, kFp64, "FP64_UTIL"},
    {12, kFp32, "FP32_UTIL"},
    {13, kFp16, "FP16_UTIL"},
    {20, kDram, "PCIE_TX_PER_SEC", kPcieSentPerPercent},
    {21, kDram, "PCIE_RX_PER_SEC", kPcieReceivedPerPercent},
    {60, -1, "NVLINK_TOTAL_RX_PER_SEC"},
    {61, -1, "NVLINK_TOTAL_TX_PER_SEC"},
};
constexpr Millis kGpmRefresh = 100;

void read_metric(const ActivitySum& from, const ActivitySum& to, GpmMetric* metric) {
  metric->nvmlReturn = kNotSupported;
  metric->value = 0;
  for (const GpmName& known : kGpmNames) {
    if (known.id != metric->metricId) continue;
    metric->nvmlReturn = kSuccess;
    metric->shortName = metric->longName = known.name;
    metric->unit = "%";
    const Millis time = to.t - from.t;
    if (time < kGpmRefresh) {
      // The two samples are too close: the real driver gives 0 for the first metric and 0/0 for the others.
      metric->value = known.id == 1 ? 0 : std::numeric_limits<double>::quiet_NaN();
    } else if (known.index >= 0) {
      const auto i = static_cast<size_t>(known.index);
      metric->value = (to.sums[i] - from.sums[i]) / static_cast<double>(time) * known.scale;
    }
    return;
  }
}

Return take_gpm_sample(Node& node, const Gpu& gpu, unsigned scope, GpmSample sample) {
  if (!gpu.spec().model.gpm) return kNotSupported;
  const auto known = node.gpm_samples().find(sample);
  if (known == node.gpm_samples().end()) return kInvalidArgument;
  const auto activity = gpu.state().activity.find(scope);
  if (activity == gpu.state().activity.end()) return kInvalidArgument;
  known->second->sum = activity->second;
  known->second->filled = true;
  return kSuccess;
}

}  // namespace

extern "C" {

Return nvmlDeviceGetTotalEnergyConsumption(Device device, unsigned long long* millijoules) {
  return on_whole_gpu(__func__, device, [&](Node& node, Target& target) {
    if (!millijoules) return kInvalidArgument;
    if (!target.gpu->spec().model.energy_counter) return kNotSupported;
    *millijoules = answer_of("nvmlDeviceGetTotalEnergyConsumption", node, target.index, target.gpu->state().counter_mj);
    return kSuccess;
  });
}

Return nvmlDeviceGetPowerUsage(Device device, unsigned* milliwatts) {
  return on_whole_gpu(__func__, device, [&](Node& node, Target& target) {
    if (!milliwatts) return kInvalidArgument;
    *milliwatts =
        static_cast<unsigned>(answer_of("nvmlDeviceGetPowerUsage", node, target.index, target.gpu->state().power_mw));
    return kSuccess;
  });
}

Return nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned* milliwatts) {
  return limit(__func__, device, milliwatts);
}

Return nvmlDeviceGetPowerManagementLimit(Device device, unsigned* milliwatts) {
  return limit(__func__, device, milliwatts);
}

Return nvmlDeviceGetPowerManagementDefaultLimit(Device device, unsigned* milliwatts) {
  return limit(__func__, device, milliwatts);
}

Return nvmlDeviceGetPowerManagementLimitConstraints(Device device, unsigned* low, unsigned* high) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    if (!low || !high) return kInvalidArgument;
    *low = limit_mw(gpu) / 2;
    *high = limit_mw(gpu);
    return kSuccess;
  });
}

Return nvmlDeviceGetSamples(Device device, unsigned type, unsigned long long last_seen, unsigned* value_type,
                            unsigned* count, Sample* samples) {
  return on_gpu(__func__, device, [&](Node& node, Gpu& gpu) {
    if (!value_type || !count) return kInvalidArgument;
    std::vector<Sample> found;
    const Return collected = collect_samples(node, gpu, type, last_seen, &found);
    if (collected != kSuccess) return collected;
    *value_type = kValueUnsignedInt;
    if (!samples) {
      *count = static_cast<unsigned>(found.size());
      return kSuccess;
    }
    if (*count < found.size()) return kInsufficientSize;
    std::copy(found.begin(), found.end(), samples);
    *count = static_cast<unsigned>(found.size());
    return kSuccess;
  });
}

Return nvmlGpmQueryDeviceSupport(Device device, GpmSupport* support) {
  return on_device(__func__, device, [&](Node&, Target& target) {
    if (!support) return kInvalidArgument;
    if (support->version != 1) return kArgumentVersionMismatch;
    support->isSupportedDevice = target.gpu->spec().model.gpm ? 1 : 0;
    return kSuccess;
  });
}

Return nvmlGpmSampleAlloc(GpmSample* sample) {
  return on_driver(__func__, [&](Node& node) {
    if (!sample) return kInvalidArgument;
    auto fresh = std::make_unique<GpmSampleHandle>();
    *sample = fresh.get();
    node.gpm_samples().emplace(*sample, std::move(fresh));
    return kSuccess;
  });
}

Return nvmlGpmSampleFree(GpmSample sample) {
  std::lock_guard lock(Node::get().mutex());
  return Node::get().gpm_samples().erase(sample) ? kSuccess : kInvalidArgument;
}

Return nvmlGpmSampleGet(Device device, GpmSample sample) {
  return on_device(__func__, device, [&](Node& node, Target& target) {
    const unsigned scope = target.instance ? target.instance->gpu_instance : kWholeGpu;
    return take_gpm_sample(node, *target.gpu, scope, sample);
  });
}

Return nvmlGpmMigSampleGet(Device device, unsigned gpu_instance, GpmSample sample) {
  return on_gpu(__func__, device,
                [&](Node& node, Gpu& gpu) { return take_gpm_sample(node, gpu, gpu_instance, sample); });
}

Return nvmlGpmMetricsGet(GpmMetricsGet* request) {
  return on_driver(__func__, [&](Node& node) {
    if (!request) return kInvalidArgument;
    if (request->version != 1) return kArgumentVersionMismatch;
    const auto from = node.gpm_samples().find(request->sample1);
    const auto to = node.gpm_samples().find(request->sample2);
    if (from == node.gpm_samples().end() || to == node.gpm_samples().end()) return kInvalidArgument;
    if (!from->second->filled || !to->second->filled) return kInvalidArgument;
    // The array is longer than declared here; see GpmMetricsGet.
    GpmMetric* metrics = request->metrics;
    for (unsigned i = 0; i < request->numMetrics; ++i) read_metric(from->second->sum, to->second->sum, metrics + i);
    return kSuccess;
  });
}

}  // extern "C"

}  // namespace gpuledger::nvml
