// SPDX-License-Identifier: Apache-2.0
#include "sample/dcgm/dcgm_source.h"

#include <algorithm>
#include <utility>

#include "sample/gpu_filter.h"

namespace gpuledger::dcgm {

namespace {

constexpr Nanoseconds kBetweenLooks = std::chrono::milliseconds(50);
constexpr Nanoseconds kLongestWait = std::chrono::milliseconds(250);
// The driver's own monitors start with the second batch too.
constexpr int kBatchesWithout = 3;
constexpr Nanoseconds kRememberSeen = std::chrono::minutes(10);
// GPUs ever seen. An engine has 32 at once, and few are exchanged while a program runs.
constexpr size_t kMostKnown = 128;

}  // namespace

DcgmSource::DcgmSource(std::unique_ptr<GpuSource> nvml, std::unique_ptr<EngineThread> engine,
                       const DcgmSourceOptions& options, const Clock& clock)
    : nvml_(std::move(nvml)),
      engine_(std::move(engine)),
      clock_(clock),
      interval_(options.sample_interval),
      gpu_devices_(options.gpu_devices) {}

Result<std::unique_ptr<DcgmSource>> DcgmSource::open(const DcgmSourceOptions& options, std::unique_ptr<GpuSource> nvml,
                                                     const Clock& clock) {
  GL_TRY(library, load_library(options.library));
  ReaderOptions reader;
  reader.whole = nvml == nullptr;
  reader.gpu_devices = options.gpu_devices;
  reader.interval = options.sample_interval;
  GL_TRY(engine, EngineThread::start(std::move(library), options.where, std::move(reader), clock).about("dcgm"));
  return std::unique_ptr<DcgmSource>(new DcgmSource(std::move(nvml), std::move(engine), options, clock));
}

Result<std::vector<DeviceDescription>> DcgmSource::wait_for_gpus(Nanoseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  engine_->wait_for_first(patience);
  Findings found = engine_->take();
  while (!found.view && std::chrono::steady_clock::now() < deadline) {
    engine_->ask({});
    std::this_thread::sleep_for(kBetweenLooks);
    found = engine_->take();
  }
  if (!found.view) return Error{Code::kUnavailable, found.health.reason};
  std::vector<DeviceDescription> gpus;
  for (const DeviceSample& device : found.view->devices) gpus.push_back(*device.description);
  return gpus;
}

SampleBatch DcgmSource::sample(bool scan_processes) {
  if (!nvml_) return sample_alone();
  std::set<GpuUuid> lacking;
  for (const auto& [uuid, batches] : without_activity_) {
    if (batches >= kBatchesWithout) lacking.insert(uuid);
  }
  engine_->ask(std::move(lacking));  // works in parallel to NVML and is not waited for
  SampleBatch batch = nvml_->sample(scan_processes);
  for (const DeviceSample& device : batch.devices) {
    if (!device.up) continue;
    int& batches = without_activity_[device.description->uuid];
    batches = device.activity ? 0 : std::min(batches + 1, kBatchesWithout);
  }
  Findings found = engine_->take();
  if (found.view) add_activity(*found.view, batch);
  note_seen(batch);
  add_lives(found.lives, batch);
  batch.more_health.push_back(std::move(found.health));
  batch.call_durations.merge(found.durations);
  last_at_ = batch.at;
  return batch;
}

// The newest finished read, with its own time: its energy and processes are of that moment. An unfinished read is in
// the next batch.
SampleBatch DcgmSource::sample_alone() {
  engine_->ask({});
  engine_->wait(std::min(kLongestWait, interval_ / 2));
  Findings found = engine_->take();
  SampleBatch batch;
  batch.at = clock_.now();
  if (found.view) {
    batch.at = found.view->at;
    if (last_at_ && batch.at.steady < last_at_->steady) batch.at = *last_at_;
    batch.devices = found.view->devices;
    batch.processes_scanned = true;
    add_activity(*found.view, batch);
  }
  too_many_gpus_ += std::erase_if(batch.devices, [this](const DeviceSample& device) { return !remember(device); });
  for (const auto& known : known_) {
    const auto is_it = [&](const DeviceSample& device) { return device.description->uuid == known->uuid; };
    if (std::any_of(batch.devices.begin(), batch.devices.end(), is_it)) continue;
    batch.devices.emplace_back().description = known;  // missing now: down
  }
  for (const XidSeen& seen : found.xids) {
    for (DeviceSample& device : batch.devices) {
      if (device.description->uuid == seen.gpu) device.xids.push_back(seen.xid);
    }
  }
  batch.missing_gpus = missing_gpus(gpu_devices_, batch.devices);
  note_seen(batch);
  add_lives(found.lives, batch);
  batch.health = std::move(found.health);
  if (too_many_gpus_ > 0) batch.health.errors["too_many_gpus"] = too_many_gpus_;
  batch.call_durations = std::move(found.durations);
  last_at_ = batch.at;
  return batch;
}

// False: it is one too many. The books keep every GPU for good, and an engine may give another UUID each time.
bool DcgmSource::remember(const DeviceSample& device) {
  const auto same = [&](const auto& known) { return known->uuid == device.description->uuid; };
  const auto at = std::find_if(known_.begin(), known_.end(), same);
  if (at == known_.end() && known_.size() >= kMostKnown) return false;
  (at == known_.end() ? known_.emplace_back() : *at) = device.description;
  return true;
}

// NVML's own activity has priority: it is of this step, the engine's of about the last second.
void DcgmSource::add_activity(const View& view, SampleBatch& batch) const {
  for (DeviceSample& device : batch.devices) {
    const auto found = view.activity.find(device.description->uuid);
    if (!device.up || found == view.activity.end()) continue;
    if (!device.activity) device.activity = found->second.whole;
    if (device.instance_activity.empty()) device.instance_activity = found->second.instances;
    if (!device.activity) continue;
    const Traffic& traffic = device.activity->traffic;
    if (!device.traffic.pcie_sent) device.traffic.pcie_sent = traffic.pcie_sent;
    if (!device.traffic.pcie_received) device.traffic.pcie_received = traffic.pcie_received;
  }
}

void DcgmSource::note_seen(const SampleBatch& batch) {
  for (const DeviceSample& device : batch.devices) {
    for (const ProcessSample& process : device.processes) {
      seen_[{device.description->uuid, process.pid}] = batch.at.wall;
    }
  }
  std::erase_if(seen_, [&](const auto& entry) { return batch.at.wall - entry.second > kRememberSeen; });
}

// A process that was in a batch while it ran is already booked. If NVML reads the driver's accounting itself, it has
// reported this process or will.
void DcgmSource::add_lives(const std::vector<Life>& lives, SampleBatch& batch) {
  const Nanoseconds step =
      last_at_ && batch.at.steady > last_at_->steady ? batch.at.steady - last_at_->steady : interval_;
  for (const Life& life : lives) {
    for (DeviceSample& device : batch.devices) {
      if (device.description->uuid != life.gpu || !device.up) continue;
      if (nvml_ && device.description->accounting_enabled.value_or(false)) continue;
      const auto seen = seen_.find({life.gpu, life.pid});
      if (seen != seen_.end() && seen->second >= life.began) continue;
      ProcessSample process;
      process.pid = life.pid;
      process.memory = life.memory;
      process.use.sm = Ratio{std::min(1.0, life.busy_seconds / std::chrono::duration<double>(step).count())};
      const auto at = std::find_if(device.processes.begin(), device.processes.end(),
                                   [&](const ProcessSample& other) { return other.pid >= life.pid; });
      if (at == device.processes.end() || at->pid != life.pid) device.processes.insert(at, process);
    }
  }
}

std::vector<Pid> DcgmSource::glance() {
  return nvml_ ? nvml_->glance() : std::vector<Pid>();
}

void DcgmSource::change_interval(Nanoseconds sample_interval) {
  interval_ = sample_interval;
  engine_->change_interval(sample_interval);
  if (nvml_) nvml_->change_interval(sample_interval);
}

void DcgmSource::change_readings(const Readings& wanted) {
  if (nvml_) nvml_->change_readings(wanted);
}

void DcgmSource::release() {
  engine_->release();
  if (nvml_) nvml_->release();
}

void DcgmSource::resume() {
  engine_->resume();
  if (nvml_) nvml_->resume();
}

}  // namespace gpuledger::dcgm
