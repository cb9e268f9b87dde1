#include "sample/nvml/nvml_source.h"

#include <algorithm>
#include <optional>
#include <utility>

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
    : options_(std::move(options)), loader_(std::move(loader)), calls_(clock), retry_delay_(kFirstRetry) {}

NvmlSource::~NvmlSource() {
  close("");
}

Status NvmlSource::open() {
  Result<Library> library = loader_();
  if (!library) {
    calls_.count_failure(code_name(library.error().code));
    return library.error();
  }
  calls_.forget_driver_gone();
  // Library first and then nvmlInit: on failure the library goes out of scope, so the next try loads what is
  // installed by then.
  if (const Return result = calls_(library->functions.nvmlInit_v2); result != kSuccess) {
    calls_.count_failure(result);
    return failure("nvmlInit_v2", result);
  }
  open_ = std::make_unique<Open>();
  open_->library = std::move(*library);
  Session driver = session();
  char version[kVersionBufferSize] = {};
  if (driver.call(driver.fn.nvmlSystemGetDriverVersion, version, kVersionBufferSize - 1) == kSuccess) {
    open_->driver = version;
  }
  open_->xids.open(driver);
  return ok_status();
}

void NvmlSource::close(const std::string& why) {
  if (!open_) return;
  for (NvmlDevice& device : devices_) device.detach(why);
  Session driver = session();
  open_->xids.close(driver);
  driver.call(driver.fn.nvmlShutdown);
  open_.reset();
  calls_.forget_driver_gone();
}

void NvmlSource::retry_later() {
  next_attempt_ = calls_.now().steady + retry_delay_;
  retry_delay_ = std::min(retry_delay_ * 2, kLastRetry);
}

bool NvmlSource::wanted(unsigned index, const std::string& uuid) const {
  const std::vector<std::string>& filter = options_.gpu_devices;
  if (filter.empty()) return true;
  return std::find(filter.begin(), filter.end(), uuid) != filter.end() ||
         std::find(filter.begin(), filter.end(), std::to_string(index)) != filter.end();
}

void NvmlSource::found_device(unsigned index, Device handle) {
  Session driver = session();
  char uuid[kUuidBufferSize] = {};
  if (const Return result = driver.call(driver.fn.nvmlDeviceGetUUID, handle, uuid, kUuidBufferSize - 1);
      result != kSuccess) {
    calls_.count_failure(result);
    return;
  }
  if (!wanted(index, uuid)) return;
  auto device = std::find_if(devices_.begin(), devices_.end(), [&](const auto& d) { return d.uuid().text == uuid; });
  if (device == devices_.end()) device = devices_.insert(devices_.end(), NvmlDevice(GpuUuid{uuid}));
  if (device->handle() == handle && device->index() == index) return;
  device->attach(driver, handle, index, open_->driver);
  open_->xids.watch(driver, handle);
}

// Handles by index; the GPUs themselves are told apart by UUID, since the order may be another after a reload.
Status NvmlSource::find_devices() {
  Session driver = session();
  unsigned count = 0;
  if (const Return result = driver.call(driver.fn.nvmlDeviceGetCount_v2, &count); result != kSuccess) {
    calls_.count_failure(result);
    return failure("nvmlDeviceGetCount_v2", result);
  }
  std::optional<Error> refused;
  for (unsigned i = 0; i < std::min(count, kMostDevices) && !calls_.driver_gone(); ++i) {
    Device handle = nullptr;
    const Return result = driver.call(driver.fn.nvmlDeviceGetHandleByIndex_v2, i, &handle);
    if (result == kSuccess) {
      found_device(i, handle);
    } else {
      // The count includes GPUs that a container may not use: no failure as long as others answer.
      if (result != kNoPermission) calls_.count_failure(result);
      refused = failure("nvmlDeviceGetHandleByIndex_v2", result);
    }
  }
  std::sort(devices_.begin(), devices_.end(), [](const NvmlDevice& a, const NvmlDevice& b) {
    return std::pair(a.index(), a.uuid()) < std::pair(b.index(), b.uuid());
  });
  if (calls_.driver_gone()) return Error{Code::kUnavailable, calls_.driver_gone_reason()};
  if (!devices_.empty()) return ok_status();
  if (count == 0) {
    return Error{Code::kNotFound,
                 "the NVIDIA driver is loaded but has no GPU: see nvidia-smi and lspci, or in a container give it one"};
  }
  if (refused) return Error{refused->code, "no GPU can be used: " + refused->message};
  return check_filter();
}

Status NvmlSource::check_filter() const {
  for (const std::string& name : options_.gpu_devices) {
    const bool known = std::any_of(devices_.begin(), devices_.end(), [&](const NvmlDevice& device) {
      return device.uuid().text == name || std::to_string(device.index()) == name;
    });
    if (!known) {
      return Error{Code::kNotFound,
                   "--gpu-devices names " + name + ", but there is no such GPU: nvidia-smi -L lists indexes and UUIDs"};
    }
  }
  return ok_status();
}

Result<NvmlProbe> NvmlSource::probe() {
  Status status = open_ ? ok_status() : open();
  if (status) status = find_devices();
  if (status) status = check_filter();
  if (!status) return status.error();
  NvmlProbe probe;
  probe.driver = open_->driver;
  probe.missing_symbols = open_->library.functions.missing_optional();
  for (const NvmlDevice& device : devices_) {
    probe.gpus.push_back({device.index(), device.uuid(), device.absent().description->model});
  }
  return probe;
}

void NvmlSource::fill_absent(SampleBatch& batch) {
  batch.devices.clear();
  for (const NvmlDevice& device : devices_) batch.devices.push_back(device.absent());
  batch.processes_scanned = false;
  batch.health.up = false;
  batch.health.reason = trouble_;
}

void NvmlSource::add_xids(SampleBatch& batch) {
  Session driver = session();
  for (const auto& [handle, xid] : open_->xids.drain(driver)) {
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i].handle() == handle) batch.devices[i].xids.push_back(xid);
    }
  }
}

bool NvmlSource::sample_devices(bool scan, SampleBatch& batch) {
  Session driver = session();
  bool all_scanned = !devices_.empty();
  for (NvmlDevice& device : devices_) {
    if (calls_.driver_gone()) return false;
    if (!device.handle()) {
      batch.devices.push_back(device.absent());
      continue;
    }
    all_scanned = all_scanned && (scan || !device.answering());
    batch.devices.push_back(device.sample(driver, scan, options_.sample_interval));
    batch.health.up = batch.health.up || device.answering();
    if (!device.answering() && batch.health.reason.empty()) {
      batch.health.reason = device.uuid().text + ": " + device.trouble();
    }
  }
  return all_scanned;
}

SampleBatch NvmlSource::sample(bool scan_processes) {
  SampleBatch batch;
  batch.at = calls_.now();
  batch.health.source = "nvml";
  if (!released_ && !open_ && batch.at.steady >= next_attempt_) {
    if (Status status = open(); !status) {
      trouble_ = status.error().message;
      retry_later();
    }
  }
  if (open_) {
    const bool someone_missing =
        devices_.empty() || std::any_of(devices_.begin(), devices_.end(), [](const auto& d) { return !d.answering(); });
    Status found = scan_processes || someone_missing ? find_devices() : ok_status();
    batch.processes_scanned = sample_devices(scan_processes, batch);
    if (!calls_.driver_gone()) add_xids(batch);
    if (!found && !batch.health.up) batch.health.reason = found.error().message;
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
  batch.health.errors = calls_.errors();
  batch.call_durations = calls_.durations();
  return batch;
}

void NvmlSource::release() {
  released_ = true;
  trouble_ = "released on request: the driver is closed until it is taken back";
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
