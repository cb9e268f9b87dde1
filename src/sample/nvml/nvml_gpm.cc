// SPDX-License-Identifier: Apache-2.0
#include "sample/nvml/nvml_gpm.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace gpuledger::nvml {

namespace {

// The monitors update every 100 ms; two samples closer than that give 0 for graphics and NaN for the rest.
constexpr Nanoseconds kRefresh = std::chrono::milliseconds(100);
// A read every 100 ms is sometimes a little early; the answer itself shows whether it was too early.
constexpr Nanoseconds kShortest = kRefresh * 9 / 10;

struct Wanted {
  GpmMetricId id;
  Activity::Part part;
};
constexpr Wanted kParts[] = {
    {kGpmSm, Activity::kSm},     {kGpmOccupancy, Activity::kOccupancy}, {kGpmAnyTensor, Activity::kTensor},
    {kGpmDram, Activity::kDram}, {kGpmFp64, Activity::kFp64},           {kGpmFp32, Activity::kFp32},
};
struct WantedTraffic {
  GpmMetricId id;
  std::optional<double> Traffic::*rate;
};
constexpr WantedTraffic kTraffic[] = {
    {kGpmPcieSent, &Traffic::pcie_sent},
    {kGpmPcieReceived, &Traffic::pcie_received},
    {kGpmNvlinkSent, &Traffic::nvlink_sent},
    {kGpmNvlinkReceived, &Traffic::nvlink_received},
};
constexpr unsigned kMetrics = 1 + Activity::kParts + std::size(kTraffic);
static_assert(std::size(kParts) == Activity::kParts && kMetrics <= kMostGpmMetrics);

std::optional<Ratio> ratio_of(const GpmMetric& metric) {
  if (metric.nvmlReturn != kSuccess || !std::isfinite(metric.value) || metric.value < 0) return std::nullopt;
  return std::min(Ratio{1}, Ratio::of_percent(metric.value));
}

std::optional<double> rate_of(const GpmMetric& metric) {
  if (metric.nvmlReturn != kSuccess || !std::isfinite(metric.value) || metric.value < 0) return std::nullopt;
  return metric.value * (1 << 20);
}

Return read_metrics(Session& session, GpmSample from, GpmSample to, Activity& out) {
  GpmMetricsGet request{};
  request.version = kGpmMetricsGetVersion;
  request.numMetrics = kMetrics;
  request.sample1 = from;
  request.sample2 = to;
  request.metrics[0].metricId = kGpmGraphics;
  GpmMetric* const traffic = request.metrics + 1 + Activity::kParts;
  for (size_t i = 0; i < Activity::kParts; ++i) request.metrics[i + 1].metricId = kParts[i].id;
  for (size_t i = 0; i < std::size(kTraffic); ++i) traffic[i].metricId = kTraffic[i].id;
  const Return result = session.call(session.fn.nvmlGpmMetricsGet, &request);
  if (result != kSuccess) return result;
  out.graphics = ratio_of(request.metrics[0]);
  for (size_t i = 0; i < Activity::kParts; ++i) out.parts[kParts[i].part] = ratio_of(request.metrics[i + 1]);
  for (size_t i = 0; i < std::size(kTraffic); ++i) out.traffic.*kTraffic[i].rate = rate_of(traffic[i]);
  return kSuccess;
}

}  // namespace

bool GpmReader::supported(Session& session, Device device) {
  if (supported_) return *supported_;
  const FunctionTable& fn = session.fn;
  if (!fn.nvmlGpmSampleAlloc || !fn.nvmlGpmSampleFree || !fn.nvmlGpmSampleGet || !fn.nvmlGpmMetricsGet) {
    return *(supported_ = false);
  }
  GpmSupport support{kGpmSupportVersion, 0};
  const Return result = session.call(fn.nvmlGpmQueryDeviceSupport, device, &support);
  if (result == kSuccess || means_unsupported(result)) {
    return *(supported_ = result == kSuccess && support.isSupportedDevice != 0);
  }
  session.call.count_failure(result);
  return false;  // this time
}

bool GpmReader::allocate(Session& session, Pair& pair) {
  for (GpmSample* sample : {&pair.older, &pair.newer}) {
    if (*sample) continue;
    const Return result = session.call(session.fn.nvmlGpmSampleAlloc, sample);
    if (result == kSuccess) continue;
    *sample = nullptr;
    session.call.count_failure(result);
    return false;
  }
  return true;
}

Return GpmReader::read_scope(Session& session, Device device, uint32_t scope, std::optional<Activity>& out) {
  Pair& pair = pairs_[scope];
  const Nanoseconds now = session.call.now().steady;
  if (pair.unsupported || (pair.older_at && now - *pair.older_at < kShortest)) return kSuccess;
  if (!allocate(session, pair)) return kSuccess;
  const Return result = scope == kNoInstance ? session.call(session.fn.nvmlGpmSampleGet, device, pair.newer)
                                             : session.call(session.fn.nvmlGpmMigSampleGet, device, scope, pair.newer);
  if (means_unsupported(result)) {
    release(session.fn, pair);
    pair.unsupported = true;
    return kSuccess;
  }
  if (result != kSuccess) {
    session.call.count_failure(result);
    return result;
  }
  const std::optional<Nanoseconds> older_at = pair.older_at;
  Activity activity;
  Return compared = kSuccess;
  if (older_at) compared = read_metrics(session, pair.older, pair.newer, activity);
  // Our clock and the monitors' are not in step: samples a little more than an update apart may still be too close.
  // Further apart, NaN is the GPU's answer, and waiting longer would only blur the next one.
  const bool too_close =
      older_at && compared == kSuccess && !activity.parts[Activity::kSm] && now - *older_at < 2 * kRefresh;
  if (too_close) return kSuccess;
  // After a failed comparison too: the older sample may be the reason.
  std::swap(pair.older, pair.newer);
  pair.older_at = now;
  if (compared != kSuccess) session.call.count_failure(compared);
  if (older_at && compared == kSuccess) out = activity;
  return compared;
}

void GpmReader::drop_gone_instances(const FunctionTable& functions, const std::vector<MigInstance>& instances) {
  for (auto at = pairs_.begin(); at != pairs_.end();) {
    const bool stays =
        at->first == kNoInstance || std::any_of(instances.begin(), instances.end(),
                                                [&](const MigInstance& i) { return i.id.gpu_instance == at->first; });
    if (!stays) release(functions, at->second);
    at = stays ? std::next(at) : pairs_.erase(at);
  }
}

Return GpmReader::read(Session& session, Device device, const std::vector<MigInstance>& instances, DeviceSample& out) {
  if (!supported(session, device)) return kSuccess;
  drop_gone_instances(session.fn, instances);
  // A GPU in MIG mode may refuse values of the whole GPU; its instances give them.
  Return result = read_scope(session, device, kNoInstance, out.activity);
  std::set<uint32_t> scopes;
  for (const MigInstance& instance : instances) scopes.insert(instance.id.gpu_instance);
  for (const uint32_t scope : scopes) {
    if (means_gpu_gone(result)) break;
    std::optional<Activity> activity;
    result = read_scope(session, device, scope, activity);
    if (activity) out.instance_activity[scope] = *activity;
  }
  return means_gpu_gone(result) ? result : kSuccess;
}

// Not through Calls: a free needs no timing, and the last one may come when nothing is counted any more.
void GpmReader::release(const FunctionTable& functions, Pair& pair) {
  for (GpmSample sample : {pair.older, pair.newer}) {
    if (sample) functions.nvmlGpmSampleFree.pointer(sample);
  }
  pair = Pair{};
}

void GpmReader::close(const FunctionTable& functions) {
  for (auto& [scope, pair] : pairs_) release(functions, pair);
  pairs_.clear();
  supported_.reset();
}

}  // namespace gpuledger::nvml
