// SPDX-License-Identifier: Apache-2.0
#include "sample/nvml/nvml_device.h"

#include <algorithm>

#include "model/most_power.h"
#include "sample/nvml/nvml_processes.h"

namespace gpuledger::nvml {

namespace {

// Boards without a number report zeros or N/A.
std::string without_blank(std::string_view text) {
  if (text == "N/A" || text.find_first_not_of("0. ") == std::string_view::npos) return "";
  return std::string(text);
}

}  // namespace

NvmlDevice::NvmlDevice(GpuUuid uuid) {
  auto description = std::make_shared<DeviceDescription>();
  description->uuid = std::move(uuid);
  description_ = std::move(description);
}

void NvmlDevice::attach(Session& session, Device handle, unsigned index, const std::string& driver) {
  handle_ = handle;
  lost_ = false;
  forget_capabilities(session.fn);
  auto description = std::make_shared<DeviceDescription>(*description_);
  description->index = index;
  description->driver = driver;
  char name[kNameBufferSize] = {};
  if (read(session, session.fn.nvmlDeviceGetName, name, kNameBufferSize - 1)) description->model = name;
  unsigned minor = 0;
  if (read(session, session.fn.nvmlDeviceGetMinorNumber, &minor)) description->minor = minor;
  PciInfo pci{};
  if (read(session, session.fn.nvmlDeviceGetPciInfo_v3, &pci)) {
    pci.busId[sizeof(pci.busId) - 1] = '\0';
    description->pci_bus_id = pci.busId;
  }
  char serial[kSerialBufferSize] = {};
  if (read(session, session.fn.nvmlDeviceGetSerial, serial, kSerialBufferSize - 1)) {
    description->serial = without_blank(serial);
  }
  char vbios[kVbiosBufferSize] = {};
  if (read(session, session.fn.nvmlDeviceGetVbiosVersion, vbios, kVbiosBufferSize - 1)) {
    description->vbios_version = without_blank(vbios);
  }
  description_ = std::move(description);
}

void NvmlDevice::detach(const FunctionTable& functions, const std::string& why) {
  forget_capabilities(functions);
  handle_ = nullptr;
  answering_ = false;
  trouble_ = why;
}

void NvmlDevice::forget_capabilities(const FunctionTable& functions) {
  unsupported_.clear();
  never_listed_.clear();
  utilization_.reset();
  accounting_.reset();
  calm_.reset();
  vitals_.reset();
  glances_.reset();
  refuses_glances_ = lists_instances_ = false;
  gpm_.close(functions);
}

// False: no value. A GPU that reported that it is lost is not called again in this cycle.
template <typename Signature, typename... Arguments>
bool NvmlDevice::read(Session& session, const Function<Signature>& function, Arguments... arguments) {
  if (lost_ || !can(function)) return false;
  const Return result = session.call(function, handle_, arguments...);
  if (result == kSuccess) return succeeded_ = true;
  if (means_unsupported(result)) {
    unsupported_.insert(function.name);
    return false;
  }
  session.call.count_failure(result);
  failed_ = true;
  lost_ = means_gpu_gone(result);
  trouble_ = nvml::describe(function.name, result);
  return false;
}

void NvmlDevice::read_memory(Session& session, DeviceSample& out) {
  Memory_v2 memory{};
  memory.version = kMemoryVersion2;
  // Version 1 counts the driver's reserved memory as used, version 2 does not.
  if (read(session, session.fn.nvmlDeviceGetMemoryInfo_v2, &memory)) {
    out.memory_used = Bytes{memory.used};
    out.memory_total = Bytes{memory.total};
    out.memory_free = Bytes{memory.free};
    out.memory_reserved = Bytes{memory.reserved};
    return;
  }
  if (can(session.fn.nvmlDeviceGetMemoryInfo_v2)) return;
  Memory memory_v1{};
  if (read(session, session.fn.nvmlDeviceGetMemoryInfo, &memory_v1)) {
    out.memory_used = Bytes{memory_v1.used};
    out.memory_total = Bytes{memory_v1.total};
    out.memory_free = Bytes{memory_v1.free};
  }
}

// Energy first, with its time. A slow call waits for the driver's locks and reads after that, so the time is that of
// its return.
void NvmlDevice::read_gauges(Session& session, DeviceSample& out) {
  const FunctionTable& fn = session.fn;
  unsigned long long millijoules = 0;
  if (read(session, fn.nvmlDeviceGetTotalEnergyConsumption, &millijoules)) {
    if (millijoules <= uint64_t{kMostMillijoules}) {
      out.energy_counter = Energy::millijoules(static_cast<int64_t>(millijoules));
    } else {
      session.call.count_failure("garbage");
      ++out.refused_readings;
    }
  }
  out.read_at = session.call.now();
  unsigned milliwatts = 0;
  if (read(session, fn.nvmlDeviceGetPowerUsage, &milliwatts)) out.power = Power::milliwatts(milliwatts);
  if (!out.energy_counter) out.read_at = session.call.now();
  Utilization rates{};
  if (read(session, fn.nvmlDeviceGetUtilizationRates, &rates)) {
    if (rates.gpu <= 100) out.gpu_utilization = Ratio::of_percent(rates.gpu);
    if (rates.memory <= 100) out.memory_utilization = Ratio::of_percent(rates.memory);
  }
  read_memory(session, out);
  unsigned celsius = 0;
  if (read(session, fn.nvmlDeviceGetTemperature, kTemperatureGpu, &celsius)) out.temperature_celsius = celsius;
  unsigned mhz = 0;
  if (read(session, fn.nvmlDeviceGetClockInfo, kClockSm, &mhz)) out.sm_clock_mhz = mhz;

  if (out.energy_counter) {
    set_energy_source(EnergySource::kCounter);
  } else if (!can(fn.nvmlDeviceGetTotalEnergyConsumption)) {
    set_energy_source(EnergySource::kPowerIntegral);
  }  // else it failed only this time
}

void NvmlDevice::set_energy_source(EnergySource source) {
  if (source == description_->energy_source) return;
  auto description = std::make_shared<DeviceDescription>(*description_);
  description->energy_source = source;
  description_ = std::move(description);
}

// Values that fail this time stay as they were; values that the GPU does not have are absent.
std::vector<MigDevice> NvmlDevice::describe_state(Session& session, const DeviceSample& out) {
  const FunctionTable& fn = session.fn;
  auto description = std::make_shared<DeviceDescription>(*description_);
  unsigned value = 0, pending = 0;
  if (read(session, fn.nvmlDeviceGetMigMode, &value, &pending)) {
    const bool enabled = value == kFeatureEnabled;
    if (description->mig_enabled && enabled != *description->mig_enabled) forget_capabilities(fn);
    description->mig_enabled = enabled;
  } else if (!can(fn.nvmlDeviceGetMigMode)) {
    description->mig_enabled.reset();
  }
  if (read(session, fn.nvmlDeviceGetEnforcedPowerLimit, &value)) {
    if (is_power_limit(Power::milliwatts(value))) description->power_limit = Power::milliwatts(value);
  } else if (!can(fn.nvmlDeviceGetEnforcedPowerLimit)) {
    description->power_limit.reset();
  }
  if (read(session, fn.nvmlDeviceGetAccountingMode, &value)) {
    description->accounting_enabled = value == kFeatureEnabled;
  } else if (!can(fn.nvmlDeviceGetAccountingMode)) {
    description->accounting_enabled.reset();
  }
  std::vector<MigDevice> migs;
  if (description->mig_enabled.value_or(false) && !lost_) migs = read_mig_devices(session, handle_, out.memory_total);
  description->mig.clear();
  for (const MigDevice& device : migs) description->mig.push_back(device.instance);
  description_ = std::move(description);
  return migs;
}

bool NvmlDevice::knows(Pid pid) const {
  return std::any_of(listed_.begin(), listed_.end(), [&](const ProcessSample& p) { return p.pid == pid; });
}

void NvmlDevice::read_lists(Session& session, const std::vector<MigDevice>& migs) {
  Result<std::vector<ProcessSample>> lists =
      read_process_lists(session, handle_, description_->mig_enabled.value_or(false), migs);
  if (lists.ok()) listed_ = std::move(*lists);
}

void NvmlDevice::read_processes(Session& session, const std::vector<MigDevice>& migs, bool scan, Nanoseconds interval,
                                DeviceSample& out) {
  const UtilizationReply reply = utilization_.read(session, handle_, interval);
  out.utilization = reply.state;
  if (means_gpu_gone(reply.result)) {
    lost_ = true;
    trouble_ = nvml::describe("process utilization", reply.result);
    return;
  }
  if (scan) {
    never_listed_.clear();
    read_lists(session, migs);
  }
  // A new process works: the lists have its data, and it may exit before the next scan.
  const auto is_new = [&](const auto& use) { return !knows(use.first) && !never_listed_.contains(use.first); };
  if (!scan && std::any_of(reply.uses.begin(), reply.uses.end(), is_new)) read_lists(session, migs);
  out.processes = listed_;
  for (const auto& [pid, use] : reply.uses) {
    auto at = std::find_if(out.processes.begin(), out.processes.end(),
                           [wanted = pid](const auto& p) { return p.pid >= wanted; });
    if (at == out.processes.end() || at->pid != pid) {
      never_listed_.insert(pid);
      at = out.processes.insert(at, ProcessSample{});
      at->pid = pid;
    }
    at->use = use;
  }
}

void NvmlDevice::read_activity(Session& session, DeviceSample& out) {
  const Return result = gpm_.read(session, handle_, description_->mig, out);
  if (out.activity) calm_.leave_out_calm(*out.activity, session.call.now().steady);
  if (result == kSuccess) return;
  lost_ = true;
  trouble_ = nvml::describe("performance monitors", result);
}

void NvmlDevice::read_vitals(Session& session, const Readings& wanted, bool scan, DeviceSample& out) {
  const Return result = vitals_.read(session, handle_, wanted, scan, gpm_.works(), out);
  if (result == kSuccess) return;
  lost_ = true;
  trouble_ = nvml::describe("vitals", result);
}

void NvmlDevice::repeat_calm(Timestamp now, DeviceSample& out) {
  out.activity = calm_.activity();
  out.utilization = UtilizationState::kKnown;
  out.processes = listed_;
  utilization_.note_calm(now);
  calm_.note_skipped(now.steady);
}

// A process may have exited at any time since the last scan; it is booked in this batch, as far as it fits.
void NvmlDevice::add_short_lives(Session& session, Nanoseconds since_last, DeviceSample& out) {
  for (const ShortLife& life : accounting_.read(session, handle_)) {
    ProcessSample process;
    process.pid = life.pid;
    process.memory = life.memory;
    process.use.sm = Ratio{std::min(1.0, life.busy_seconds / std::chrono::duration<double>(since_last).count())};
    const auto at = std::find_if(out.processes.begin(), out.processes.end(),
                                 [&](const ProcessSample& p) { return p.pid >= life.pid; });
    out.processes.insert(at, process);
  }
}

// A GPU that failed waits for the next sample.
std::vector<Pid> NvmlDevice::glance(Session& session) {
  if (!answering_ || !handle_) return {};
  if (description_->mig_enabled.value_or(false)) {
    if (!glance_at_instances(session)) return {};
  } else {
    read_lists(session, {});
    note_glance(session);
  }
  std::vector<Pid> there;
  for (const ProcessSample& process : listed_) there.push_back(process.pid);
  return there;
}

// Without rights the GPU's own lists are refused or empty. Then only scans see the processes, through the instances'
// own handles, which are not kept: an instance may be destroyed at any time. The monitors are not read, because those
// of the whole GPU do not show the work of its instances.
bool NvmlDevice::glance_at_instances(Session& session) {
  if (refuses_glances_) return false;
  auto lists = read_process_lists(session, handle_, true, {});
  refuses_glances_ = !lists.ok() && lists.error().code == Code::kPermission;
  if (!lists.ok() || (lists->empty() && !lists_instances_)) return false;
  lists_instances_ = true;
  listed_ = std::move(*lists);
  glances_.note_lists(listed_, session.call.now().steady);
  return true;
}

void NvmlDevice::note_glance(Session& session) {
  const Nanoseconds now = session.call.now().steady;
  glances_.note_lists(listed_, now);
  // A single process needs one reading per step.
  const bool shared = listed_.size() > 1;
  const bool just_shared = shared && !shared_;
  shared_ = shared;
  if (!shared) return;
  DeviceSample seen;
  (void)gpm_.read(session, handle_, {}, seen);
  if (!seen.activity || just_shared) return;  // the first includes time before sharing
  unsigned mhz = 0;
  const FunctionTable& fn = session.fn;
  const bool clock =
      can(fn.nvmlDeviceGetClockInfo) && session.call(fn.nvmlDeviceGetClockInfo, handle_, kClockSm, &mhz) == kSuccess;
  glances_.note_activity(*seen.activity, clock ? std::optional<double>(mhz) : std::nullopt, now);
}

DeviceSample NvmlDevice::sample(Session& session, bool scan, Nanoseconds sample_interval, const Readings& wanted) {
  scan = scan || !answering_;
  lost_ = succeeded_ = failed_ = false;
  DeviceSample out;
  read_gauges(session, out);
  std::vector<MigDevice> migs;
  if (scan && !lost_) migs = describe_state(session, out);
  if (!scan && !lost_ && calm_.holds(out, session.call.now().steady)) {
    repeat_calm(session.call.now(), out);
  } else {
    if (!lost_) read_activity(session, out);
    if (!lost_) read_processes(session, migs, scan, sample_interval, out);
    calm_.note_full(out, session.call.now().steady);
  }
  if (!lost_) glances_.hand_on(session, handle_, listed_, out);
  const Nanoseconds now = session.call.now().steady;
  if (description_->accounting_enabled.value_or(false)) {
    for (const ProcessSample& process : out.processes) accounting_.note_seen(process.pid);
    // If utilization failed, it may name them next time, so they wait.
    const bool others_named = out.utilization == UtilizationState::kKnown;
    if (scan && others_named) add_short_lives(session, sampled_at_ ? now - *sampled_at_ : sample_interval, out);
  } else {
    accounting_.reset();
  }
  sampled_at_ = now;
  // Last: slow readings must not come between energy and processes.
  if (!lost_) read_vitals(session, wanted, scan, out);
  answering_ = !lost_ && !session.call.driver_gone() && (succeeded_ || !failed_);
  if (!answering_) {
    if (lost_) forget_capabilities(session.fn);
    return absent();
  }
  trouble_.clear();
  out.description = description_;
  out.up = true;
  return out;
}

DeviceSample NvmlDevice::absent() const {
  DeviceSample out;
  out.description = description_;
  return out;
}

}  // namespace gpuledger::nvml
