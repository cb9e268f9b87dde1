// SPDX-License-Identifier: Apache-2.0
#include "sample/switch_trace/exact_time_source.h"

#include <algorithm>
#include <utility>

namespace gpuledger::switch_trace {
namespace {

constexpr Nanoseconds kAfterMps = std::chrono::minutes(1);
// After a fault of the driver its lists may be empty for a few samples. No pid comes back so soon.
constexpr Nanoseconds kBriefly = std::chrono::seconds(30);
// Longer than any exited process is shown.
constexpr Nanoseconds kForgetGone = std::chrono::hours(1);

}  // namespace

ExactTimeSource::ExactTimeSource(std::unique_ptr<GpuSource> inner, std::shared_ptr<DriverDoor> door,
                                 ExactTimeOptions options, const Clock& clock)
    : inner_(std::move(inner)), door_(std::move(door)), options_(options), clock_(clock) {}

ExactTimeSource::~ExactTimeSource() {
  end_traces();
}

void ExactTimeSource::end_traces() {
  for (auto& [uuid, traced] : gpus_) {
    if (traced.tracer) traced.tracer->ask_to_end();
  }
  for (auto& [uuid, traced] : gpus_) traced.tracer.reset();
}

SampleBatch ExactTimeSource::sample(bool scan_processes) {
  // The other source's calls take milliseconds; the traces are read meanwhile.
  for (auto& [uuid, traced] : gpus_) {
    if (traced.tracer) traced.tracer->look_now();
  }
  SampleBatch batch = inner_->sample(scan_processes || std::exchange(scan_wanted_, false));
  for (DeviceSample& device : batch.devices) add_trace(device, batch.processes_scanned, batch.at.steady);
  return batch;
}

std::string ExactTimeSource::obstacle(Traced& traced, const DeviceSample& device, Nanoseconds now) const {
  if (!traced.disagreement.empty()) return traced.disagreement;
  if (!device.up) return "the GPU does not answer";
  // Under MPS all clients share one context, and the trace names the wrong process.
  const bool mps = std::any_of(device.processes.begin(), device.processes.end(),
                               [](const ProcessSample& process) { return process.mps_client; });
  if (mps) traced.mps_seen = now;
  if (traced.mps_seen != Nanoseconds(0) && now - traced.mps_seen < kAfterMps) {
    return "MPS is in use on this GPU: its clients share one context, so the trace cannot tell them apart";
  }
  return {};
}

void ExactTimeSource::add_trace(DeviceSample& device, bool scanned, Nanoseconds now) {
  Traced& traced = gpus_[device.description->uuid];
  std::string reason = obstacle(traced, device, now);
  if (reason.empty() && !traced.tracer) {
    auto tracer = TracerThread::start(door_, TraceOptions{device.description->pci_bus_id, options_.budget}, clock_);
    if (tracer.ok()) {
      traced.tracer = *std::move(tracer);
    } else {
      reason = tracer.error().message;  // the next cycle tries again
    }
    traced.test = SelfTest();
  }
  TraceReport report;
  if (traced.tracer) report = traced.tracer->take_report();
  take_counts(traced, report);
  bool undecided = false;
  if (!reason.empty()) {
    traced.tracer.reset();
  } else if (!report.tracing) {
    reason = report.trouble;  // it tries again by itself if that makes sense
    undecided = reason.empty();
    traced.test = SelfTest();
  } else {
    reason = judge(traced, device, report.bins, scanned, now);
    undecided = reason.empty() && !traced.test.passed(now);
  }
  traced.told.trusted = reason.empty() && !undecided;
  traced.told.reason = undecided ? "it is being tested" : reason;
  if (traced.told.trusted) {
    device.residency = std::move(report.bins);
    add_strangers(device);
  }
  if (device.up) forget_gone(traced, device, now);  // a lost GPU lists nobody
  if (!undecided) tell(traced, *device.description);
  device.exact_time = traced.told;
}

std::string ExactTimeSource::judge(Traced& traced, const DeviceSample& device, const std::vector<ResidencyBin>& bins,
                                   bool scanned, Nanoseconds now) {
  const std::string wrong = traced.test.compare(device, bins, scanned, now);
  if (wrong.empty()) {
    if (traced.test.suspicious()) traced.tracer->suspect_silence();
    return {};
  }
  traced.tracer.reset();
  return traced.disagreement = "the trace disagrees with NVML: " + wrong;
}

void ExactTimeSource::take_counts(Traced& traced, const TraceReport& report) {
  ExactTime& told = traced.told;
  told.records_read += report.records;
  told.records_lost += report.lost;
  told.switches += report.counts.switches;
  told.switching += report.counts.switching;
  told.unknown += report.counts.unknown;
  for (const auto& [pid, count] : report.counts.switches_by_process) told.switches_by_process[pid] += count;
}

// A pid that was not listed for a while and is listed again is another process.
void ExactTimeSource::forget_gone(Traced& traced, const DeviceSample& device, Nanoseconds now) {
  auto& counts = traced.told.switches_by_process;
  for (auto entry = counts.begin(); entry != counts.end();) {
    const Pid pid = entry->first;
    const bool listed = std::any_of(device.processes.begin(), device.processes.end(),
                                    [&](const ProcessSample& process) { return process.pid == pid && process.listed; });
    Presence& presence = traced.presences.try_emplace(pid, Presence{Presence::kNew, now}).first->second;
    const bool another = listed && presence.state == Presence::kGone && now - presence.since > kBriefly;
    const bool over = !listed && now - presence.since > kForgetGone;
    if (listed) presence = {Presence::kListed, now};
    if (!listed && presence.state == Presence::kListed) presence = {Presence::kGone, now};
    if (over) traced.presences.erase(pid);
    entry = another || over ? counts.erase(entry) : std::next(entry);
  }
}

// A process on the engine that is in no list is looked up while it runs, as one in a utilization sample is.
void ExactTimeSource::add_strangers(DeviceSample& device) {
  for (const ResidencyBin& bin : device.residency) {
    for (const Residency& resident : bin.residents) {
      const auto at = std::lower_bound(device.processes.begin(), device.processes.end(), resident.pid,
                                       [](const ProcessSample& process, Pid pid) { return process.pid < pid; });
      if (at != device.processes.end() && at->pid == resident.pid) continue;
      ProcessSample stranger;
      stranger.pid = resident.pid;
      device.processes.insert(at, stranger);
      scan_wanted_ = true;
    }
  }
}

void ExactTimeSource::tell(Traced& traced, const DeviceDescription& gpu) {
  const std::string name = "exact time of GPU " + std::to_string(gpu.index);
  if (traced.told.trusted) {
    states_.update(gpu.uuid.text, "on", name + " is on");
    traced.was_on = true;
    return;
  }
  const LogLevel level = options_.insist ? LogLevel::kWarn : traced.was_on ? LogLevel::kInfo : LogLevel::kDebug;
  states_.update(gpu.uuid.text, "off", name + " is off, its time is split by samples: " + traced.told.reason, level);
}

bool ExactTimeSource::at_rest() const {
  return std::all_of(gpus_.begin(), gpus_.end(),
                     [](const auto& each) { return !each.second.tracer || each.second.tracer->at_rest(); });
}

void ExactTimeSource::release() {
  end_traces();
  inner_->release();
}

void ExactTimeSource::resume() {
  for (auto& [uuid, traced] : gpus_) {
    traced.disagreement.clear();
    traced.test = SelfTest();
  }
  inner_->resume();
}

}  // namespace gpuledger::switch_trace
