// SPDX-License-Identifier: Apache-2.0
#include "sample/nvml/nvml_source.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sample/gpu_filter.h"
#include "task/health_cell.h"

namespace gpuledger::nvml {

namespace {

constexpr Nanoseconds kFirstRetry = std::chrono::seconds(1);
constexpr Nanoseconds kLastRetry = std::chrono::seconds(30);
constexpr unsigned kMostDevices = 256;

Error failure(const char* symbol, Return result) {
  const std::string advice = advice_for(result);
  return {code_of(result), describe(symbol, result) + (advice.empty() ? "" : ": " + advice)};
}

}  // namespace

NvmlSource::NvmlSource(NvmlSourceOptions options, LibraryLoader loader, const Clock& clock)
    : options_(std::move(options)),
      loader_(std::move(loader)),
      sample_interval_(options_.sample_interval),
      readings_(options_.readings),
      calls_(clock),
      clock_(clock),
      retry_delay_(kFirstRetry) {}

NvmlSource::~NvmlSource() {
  close("");
}

Status NvmlSource::open() {
  Result<Library> library = loader_();
  if (!library.ok()) {
    calls_.count_failure(code_name(library.error().code));
    return library.error();
  }
  calls_.forget_driver_gone();
  // On failure the library goes out of scope, so that the next try loads the version installed by then.
  if (const Return result = calls_(library->functions.nvmlInit_v2); result != kSuccess) {
    calls_.count_failure(result);
    return failure("nvmlInit_v2", result);
  }
  driver_ = std::make_shared<Driver>();
  driver_->library = std::move(*library);
  Session driver = session();
  char version[kVersionBufferSize] = {};
  if (driver.call(driver.fn.nvmlSystemGetDriverVersion, version, kVersionBufferSize - 1) == kSuccess) {
    driver_->version = version;
  }
  driver_->xids.open(driver);
  return ok_status();
}

// Returns at once even if a GPU hangs: its thread then keeps the driver until the call returns.
void NvmlSource::close(const std::string& why) {
  if (!driver_) return;
  for (const auto& device : devices_) device->detach(driver_->library.functions, why);
  driver_.reset();
  calls_.forget_driver_gone();
}

void NvmlSource::retry_later() {
  next_attempt_ = calls_.now().steady + retry_delay_;
  retry_delay_ = std::min(retry_delay_ * 2, kLastRetry);
}

void NvmlSource::found_device(unsigned index, Device handle) {
  Session driver = session();
  char uuid[kUuidBufferSize] = {};
  if (const Return result = driver.call(driver.fn.nvmlDeviceGetUUID, handle, uuid, kUuidBufferSize - 1);
      result != kSuccess) {
    calls_.count_failure(result);
    return;
  }
  if (!is_asked_for(options_.gpu_devices, index, uuid)) return;
  auto at = std::find_if(devices_.begin(), devices_.end(), [&](const auto& d) { return d->uuid().text == uuid; });
  if (at == devices_.end()) {
    at = devices_.insert(devices_.end(), std::make_unique<DeviceThread>(GpuUuid{uuid}, clock_));
  }
  DeviceThread& device = **at;
  if (device.hanging() || (device.handle() == handle && device.index() == index)) return;
  if (!device.attach(driver, handle, index, driver_->version).ok()) return calls_.count_failure(task::kNoThread);
  driver_->xids.watch(driver, handle);
}

bool NvmlSource::hangs_at(unsigned index) const {
  return std::any_of(devices_.begin(), devices_.end(),
                     [&](const auto& device) { return device->hanging() && device->index() == index; });
}

// Handles are found by index, GPUs by UUID, because the order may change with a reload.
Status NvmlSource::find_devices() {
  Session driver = session();
  unsigned count = 0;
  if (const Return result = driver.call(driver.fn.nvmlDeviceGetCount_v2, &count); result != kSuccess) {
    calls_.count_failure(result);
    return failure("nvmlDeviceGetCount_v2", result);
  }
  std::optional<Error> refused;
  for (unsigned i = 0; i < std::min(count, kMostDevices) && !calls_.driver_gone(); ++i) {
    if (hangs_at(i)) continue;  // getting its handle may hang, and this thread must not
    Device handle = nullptr;
    const Return result = driver.call(driver.fn.nvmlDeviceGetHandleByIndex_v2, i, &handle);
    if (result == kSuccess) {
      found_device(i, handle);
    } else {
      // The count includes GPUs that a container may not use: no failure if others answer.
      if (result != kNoPermission) calls_.count_failure(result);
      refused = failure("nvmlDeviceGetHandleByIndex_v2", result);
    }
  }
  std::sort(devices_.begin(), devices_.end(), [](const auto& a, const auto& b) {
    return std::pair(a->index(), a->uuid()) < std::pair(b->index(), b->uuid());
  });
  if (calls_.driver_gone()) return Error{Code::kUnavailable, calls_.driver_gone_reason()};
  if (!devices_.empty()) return ok_status();
  if (count == 0) {
    return Error{Code::kNotFound,
                 "the NVIDIA driver is loaded but has no GPU: see nvidia-smi and lspci, or in a container give it one"};
  }
  if (refused) return Error{refused->code, "no GPU can be used: " + refused->message};
  std::string names;
  for (const std::string& name : options_.gpu_devices) names += (names.empty() ? "" : ", ") + name;
  return Error{Code::kNotFound,
               "--gpu-devices names " + names + ", but there is no such GPU: nvidia-smi -L lists indexes and UUIDs"};
}

Result<NvmlProbe> NvmlSource::probe() {
  Status status = driver_ ? ok_status() : open();
  if (status.ok()) status = find_devices();
  if (!status.ok()) return status.error();
  NvmlProbe probe;
  probe.driver = driver_->version;
  probe.missing_symbols = driver_->library.functions.missing_optional();
  for (const auto& device : devices_) {
    probe.gpus.push_back({device->index(), device->uuid(), device->absent().description->model});
  }
  return probe;
}

void NvmlSource::fill_absent(SampleBatch& batch) {
  batch.devices.clear();
  for (const auto& device : devices_) batch.devices.push_back(device->absent());
  batch.processes_scanned = false;
  batch.health.up = false;
  batch.health.reason = trouble_;
}

void NvmlSource::add_xids(SampleBatch& batch) {
  Session driver = session();
  for (const auto& [handle, xid] : driver_->xids.drain(driver)) {
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i]->handle() == handle) batch.devices[i].xids.push_back(xid);
    }
  }
}

bool NvmlSource::sample_devices(bool scan, SampleBatch& batch) {
  if (calls_.driver_gone()) return false;
  bool all_scanned = !devices_.empty();
  for (const auto& device : devices_) {
    if (!device->handle() || device->hanging()) continue;
    all_scanned = all_scanned && (scan || !device->answering());
    device->ask(driver_, scan, sample_interval_, readings_);
  }
  const Nanoseconds limit = std::max(options_.least_answer_limit, 2 * sample_interval_);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (const auto& device : devices_) {
    batch.devices.push_back(device->answer(deadline, calls_));
    batch.health.up = batch.health.up || device->answering();
    if (!device->answering() && batch.health.reason.empty()) {
      batch.health.reason = device->uuid().text + ": " + device->trouble();
    }
  }
  return all_scanned;
}

SampleBatch NvmlSource::sample(bool scan_processes) {
  SampleBatch batch;
  batch.at = calls_.now();
  batch.health.source = "nvml";
  if (!released_ && !driver_ && batch.at.steady >= next_attempt_) {
    if (Status status = open(); !status.ok()) {
      trouble_ = status.error().message;
      retry_later();
    }
  }
  if (driver_) {
    for (const auto& device : devices_) device->settle(calls_);
    const bool someone_missing = devices_.empty() || std::any_of(devices_.begin(), devices_.end(), [](const auto& d) {
                                   return !d->answering() && !d->hanging();
                                 });
    Status found = scan_processes || someone_missing ? find_devices() : ok_status();
    batch.processes_scanned = sample_devices(scan_processes, batch);
    if (!calls_.driver_gone()) add_xids(batch);
    for (const DeviceSample& device : batch.devices) {
      if (device.read_at && device.read_at->steady > batch.at.steady) batch.at = *device.read_at;
    }
    if (!found.ok() && !batch.health.up) batch.health.reason = found.error().message;
    if (calls_.driver_gone()) {
      trouble_ = calls_.driver_gone_reason() + ": the driver was unloaded or replaced; trying again until it is back";
      close(trouble_);
      retry_later();
      fill_absent(batch);
    } else {
      retry_delay_ = kFirstRetry;
    }
  } else {
    fill_absent(batch);
  }
  batch.missing_gpus = missing_gpus(options_.gpu_devices, batch.devices);
  batch.health.errors = calls_.errors();
  batch.call_durations = calls_.durations();
  return batch;
}

std::vector<Pid> NvmlSource::glance() {
  if (!driver_ || calls_.driver_gone()) return {};
  for (const auto& device : devices_) {
    if (device->handle() && device->answering() && !device->hanging()) device->ask_glance(driver_);
  }
  const auto deadline = std::chrono::steady_clock::now() + options_.least_answer_limit;
  std::vector<Pid> there;
  for (const auto& device : devices_) {
    const std::vector<Pid> on_it = device->wait_for_glance(deadline, calls_);
    there.insert(there.end(), on_it.begin(), on_it.end());
  }
  return there;
}

void NvmlSource::release() {
  released_ = true;
  trouble_ = "released on request: the driver is closed until SIGUSR2";
  close(trouble_);
}

void NvmlSource::resume() {
  released_ = false;
  retry_delay_ = kFirstRetry;
  next_attempt_ = Nanoseconds{0};
}

std::unique_ptr<NvmlSource> make_nvml_source(NvmlSourceOptions options, const Clock& clock) {
  LibraryLoader loader = [path = options.library] { return load_library(path); };
  return std::make_unique<NvmlSource>(std::move(options), std::move(loader), clock);
}

}  // namespace gpuledger::nvml
