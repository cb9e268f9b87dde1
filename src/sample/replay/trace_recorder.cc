// SPDX-License-Identifier: Apache-2.0
#include "sample/replay/trace_recorder.h"

#include <algorithm>
#include <cstdlib>

#include "sample/nvml/nvml_processes.h"
#include "sample/replay/trace_lines.h"

namespace gpuledger::replay {
namespace {

using namespace nvml;

constexpr uint64_t kPollsPerListing = 2;  // 200 ms
constexpr uint64_t kPollsPerPower = 10;   // the driver keeps 2.4 s of power samples
constexpr unsigned kMostTickets = 4096;
constexpr unsigned kMostPowerSamples = 1024;
// How late the driver may deliver a sample, with a margin: two of its periods.
constexpr int64_t kLateMicroseconds = 400'000;
// Clocks that differ by more have different epochs.
constexpr int64_t kHourMicroseconds = 3'600'000'000;

int64_t microseconds(Nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

Error failure(const char* symbol, Return result) {
  const std::string advice = advice_for(result);
  return {code_of(result), describe(symbol, result) + (advice.empty() ? "" : ": " + advice)};
}

}  // namespace

TraceRecorder::TraceRecorder(Library library, const Clock& clock) : library_(std::move(library)), calls_(clock) {}

TraceRecorder::~TraceRecorder() {
  gpm_.close(library_.functions);
  library_.functions.nvmlShutdown.pointer();
}

Result<std::unique_ptr<TraceRecorder>> TraceRecorder::open(Library library, unsigned index, const Clock& clock) {
  if (const Return result = library.functions.nvmlInit_v2.pointer(); result != kSuccess) {
    return failure("nvmlInit_v2", result);
  }
  std::unique_ptr<TraceRecorder> recorder(new TraceRecorder(std::move(library), clock));
  GL_TRY_STATUS(recorder->find_device(index));
  return recorder;
}

Status TraceRecorder::find_device(unsigned index) {
  Session driver = session();
  if (const Return result = calls_(driver.fn.nvmlDeviceGetHandleByIndex_v2, index, &device_); result != kSuccess) {
    return failure("nvmlDeviceGetHandleByIndex_v2", result);
  }
  describe_device();
  unsigned long long millijoules = 0;
  if (const Return result = calls_(driver.fn.nvmlDeviceGetTotalEnergyConsumption, device_, &millijoules);
      means_unsupported(result)) {
    return Error{Code::kNotSupported, "GPU " + std::to_string(index) + " (" + description_.name +
                                          ") has no energy counter, so there is nothing to record"};
  }
  began_ = now_ = calls_.now();
  // Samples from before the recording come as one mean; later ones come one by one.
  for (const ProcessUtilizationSample& old : fetch_tickets()) (void)trace_time(tickets_, old.timeStamp);
  std::string old_power;
  record_power(old_power);
  return ok_status();
}

void TraceRecorder::describe_device() {
  const FunctionTable& fn = library_.functions;
  char text[kNameBufferSize] = {};
  description_.name = "GPU";
  if (calls_(fn.nvmlDeviceGetName, device_, text, kNameBufferSize - 1) == kSuccess) description_.name = text;
  char uuid[kUuidBufferSize] = {};
  if (calls_(fn.nvmlDeviceGetUUID, device_, uuid, kUuidBufferSize - 1) == kSuccess) description_.uuid = uuid;
  char version[kVersionBufferSize] = {};
  if (calls_(fn.nvmlSystemGetDriverVersion, version, kVersionBufferSize - 1) == kSuccess) {
    description_.driver = version;
  }
  PciInfo pci{};
  if (calls_(fn.nvmlDeviceGetPciInfo_v3, device_, &pci) == kSuccess) bus_address_ = pci.busId;
  Memory memory{};
  if (calls_(fn.nvmlDeviceGetMemoryInfo, device_, &memory) == kSuccess) description_.memory_total = memory.total;
  unsigned limit = 0;
  if (calls_(fn.nvmlDeviceGetEnforcedPowerLimit, device_, &limit) == kSuccess) description_.limit_milliwatts = limit;
  unsigned current = 0, pending = 0;
  mig_ = calls_(fn.nvmlDeviceGetMigMode, device_, &current, &pending) == kSuccess && current == kFeatureEnabled;
}

std::string TraceRecorder::device_line() const {
  std::string line;
  write_device(line, description_);
  return line;
}

// Also remembers the newest stamp, so that no sample is read twice.
Nanoseconds TraceRecorder::trace_time(SampleClock& clock, uint64_t stamp) {
  const int64_t age = microseconds(now_.wall) - static_cast<int64_t>(stamp);
  if (!clock.offset) clock.offset = std::abs(age) < kHourMicroseconds ? 0 : age;
  clock.last_seen = std::max(clock.last_seen, stamp);
  return t_ - std::chrono::microseconds(age - *clock.offset);
}

Status TraceRecorder::poll(std::string& out) {
  now_ = calls_.now();
  t_ = now_.steady - began_.steady;
  GL_TRY_STATUS(record_counter(out));
  record_tickets(out);
  if (polls_ % kPollsPerListing == 0) {
    record_listing(out);
    record_state(out);
  }
  record_activity(out);
  if (polls_ % kPollsPerPower == kPollsPerPower - 1) record_power(out);
  ++polls_;
  if (calls_.driver_gone()) return Error{Code::kUnavailable, calls_.driver_gone_reason()};
  return ok_status();
}

std::set<Pid> TraceRecorder::pids() const {
  std::set<Pid> pids = listed_;
  pids.insert(sampled_.begin(), sampled_.end());
  return pids;
}

void TraceRecorder::record_residency(std::vector<ResidencyBin> bins, std::string& out) const {
  std::erase_if(bins, [&](const ResidencyBin& bin) { return bin.end - bin.width < began_.steady; });
  for (ResidencyBin& bin : bins) bin.end -= began_.steady;
  write_residency(out, bins);
}

void TraceRecorder::finish(std::string& out) {
  now_ = calls_.now();
  t_ = now_.steady - began_.steady;
  record_power(out);
}

Status TraceRecorder::record_counter(std::string& out) {
  const FunctionTable& fn = library_.functions;
  unsigned long long millijoules = 0;
  const Return result = calls_(fn.nvmlDeviceGetTotalEnergyConsumption, device_, &millijoules);
  const Nanoseconds took = calls_.now().steady - now_.steady;
  if (means_gpu_gone(result)) return failure("nvmlDeviceGetTotalEnergyConsumption", result);
  if (result != kSuccess) return ok_status();
  Trace::Counter counter{t_, millijoules, std::nullopt};
  unsigned milliwatts = 0;
  if (calls_(fn.nvmlDeviceGetPowerUsage, device_, &milliwatts) == kSuccess) counter.milliwatts = milliwatts;
  write_counter(out, counter, took);
  return ok_status();
}

// The older call rounds up and shows a process that hardly worked; if it is missing, the newer.
std::vector<ProcessUtilizationSample> TraceRecorder::fetch_tickets() {
  std::vector<ProcessUtilizationSample> tickets(kMostTickets);
  unsigned count = kMostTickets;
  const Return result = calls_(library_.functions.nvmlDeviceGetProcessUtilization, device_, tickets.data(), &count,
                               static_cast<unsigned long long>(tickets_.last_seen));
  if (means_unsupported(result)) return fetch_tickets_newer();
  tickets.resize(result == kSuccess ? std::min(count, kMostTickets) : 0);
  std::erase_if(tickets, [&](const auto& ticket) { return ticket.pid == 0 || ticket.timeStamp <= tickets_.last_seen; });
  return tickets;
}

std::vector<ProcessUtilizationSample> TraceRecorder::fetch_tickets_newer() {
  std::vector<ProcessUtilizationInfo> found(kMostTickets);
  ProcessesUtilizationInfo request{kProcessesUtilizationInfoVersion1, kMostTickets, tickets_.last_seen, found.data()};
  const Return result = calls_(library_.functions.nvmlDeviceGetProcessesUtilizationInfo, device_, &request);
  found.resize(result == kSuccess ? std::min(request.processSamplesCount, kMostTickets) : 0);
  std::vector<ProcessUtilizationSample> tickets;
  for (const ProcessUtilizationInfo& f : found) {
    if (f.pid == 0 || f.timeStamp <= tickets_.last_seen) continue;
    tickets.push_back({f.pid, f.timeStamp, f.smUtil, f.memUtil, f.encUtil, f.decUtil});
  }
  return tickets;
}

// Read twice per driver period, so that one answer has one sample and not a mean of several.
void TraceRecorder::record_tickets(std::string& out) {
  const std::vector<ProcessUtilizationSample> tickets = fetch_tickets();
  sampled_.clear();
  for (const ProcessUtilizationSample& t : tickets) {
    sampled_.insert(t.pid);
    write_ticket(out, {trace_time(tickets_, t.timeStamp), t.pid, t.smUtil, t.memUtil, t.encUtil, t.decUtil}, t_);
  }
  if (!tickets.empty() || !tickets_.offset) return;
  // Nothing was active: the next mean must not include this time too.
  const int64_t idle_until = microseconds(now_.wall) - *tickets_.offset - kLateMicroseconds;
  tickets_.last_seen = std::max(tickets_.last_seen, static_cast<uint64_t>(std::max<int64_t>(0, idle_until)));
}

void TraceRecorder::record_listing(std::string& out) {
  Session driver = session();
  const auto processes = read_process_lists(driver, device_, mig_, {});
  if (!processes.ok()) return;
  Trace::Listing listing;
  listing.t = t_;
  listed_.clear();
  for (const ProcessSample& process : *processes) {
    if (process.pid != 0) listed_.insert(process.pid);
    if (process.compute || process.graphics) listing.compute.push_back({process.pid, process.memory});
    if (process.mps_client) listing.mps.push_back({process.pid, process.memory});
  }
  write_listing(out, listing);
}

void TraceRecorder::record_state(std::string& out) {
  const FunctionTable& fn = library_.functions;
  Trace::State state;
  state.t = t_;
  Utilization rates{};
  if (calls_(fn.nvmlDeviceGetUtilizationRates, device_, &rates) == kSuccess) {
    state.gpu_percent = rates.gpu;
    state.memory_percent = rates.memory;
  }
  unsigned value = 0;
  if (calls_(fn.nvmlDeviceGetClockInfo, device_, kClockSm, &value) == kSuccess) state.sm_mhz = value;
  if (calls_(fn.nvmlDeviceGetClockInfo, device_, kClockMemory, &value) == kSuccess) state.memory_mhz = value;
  if (calls_(fn.nvmlDeviceGetTemperature, device_, kTemperatureGpu, &value) == kSuccess) state.celsius = value;
  unsigned long long reasons = 0;
  if (calls_(fn.nvmlDeviceGetCurrentClocksEventReasons, device_, &reasons) == kSuccess ||
      calls_(fn.nvmlDeviceGetCurrentClocksThrottleReasons, device_, &reasons) == kSuccess) {
    state.event_reasons = reasons;
  }
  Memory memory{};
  if (calls_(fn.nvmlDeviceGetMemoryInfo, device_, &memory) == kSuccess) state.memory_used = memory.used;
  write_state(out, state);
}

void TraceRecorder::record_activity(std::string& out) {
  Session driver = session();
  DeviceSample sample;
  (void)gpm_.read(driver, device_, {}, sample);
  // This was read after the other calls, so it has its own time.
  if (sample.activity) write_busy(out, {calls_.now().steady - began_.steady, *sample.activity});
}

void TraceRecorder::record_power(std::string& out) {
  std::vector<Sample> samples(kMostPowerSamples);
  unsigned count = kMostPowerSamples, type = 0;
  const Return result = calls_(library_.functions.nvmlDeviceGetSamples, device_, kSamplesTotalPower,
                               static_cast<unsigned long long>(power_.last_seen), &type, &count, samples.data());
  if (result != kSuccess) return;
  samples.resize(std::min(count, kMostPowerSamples));
  const uint64_t since = power_.last_seen;
  std::vector<Trace::Watts> watts;
  for (const Sample& sample : samples) {
    if (sample.timeStamp <= since) continue;
    watts.push_back({trace_time(power_, sample.timeStamp), sample.sampleValue.uiVal});
  }
  if (!watts.empty()) write_power(out, watts, t_);
}

}  // namespace gpuledger::replay
