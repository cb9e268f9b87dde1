// SPDX-License-Identifier: Apache-2.0
#include "node.h"

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

namespace gpuledger::sim {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Clients may pass any pointer: only handles that were given out are used.
template <typename Handle>
const Handle* find_handle(const std::list<Handle>& given_out, const Handle* asked) {
  for (const Handle& known : given_out) {
    if (&known == asked) return &known;
  }
  return nullptr;
}

Node* the_node = nullptr;

struct AtUnload {
  ~AtUnload() { Node::leave(); }
} at_unload;

constexpr auto kLookAtHang = std::chrono::milliseconds(5);

}  // namespace

// Never destroyed: a call that hangs in here, or an engine's own thread, may outlive main. Not on the heap, so that
// nothing is lost when the library is unloaded.
Node& Node::get() {
  alignas(Node) static std::byte place[sizeof(Node)];
  static Node* const node = the_node = new (place) Node;
  return *node;
}

void Node::leave() {
  if (!the_node) return;
  const std::lock_guard lock(the_node->mutex_);
  the_node->left_ = true;
  if (the_node->delayed_ == 0) return the_node->reset();
  the_node->root_.reset();
}

Status Node::load() {
  if (left_) return Error{Code::kUnavailable, "the library was unloaded"};
  if (scenario_) return ok_status();
  // The first is also a setting of gpu-ledger, which is valid only with --backend=sim. The second is for
  // --backend=nvml, with real pods and processes.
  std::string file = environment("GPU_LEDGER_SIM_SCENARIO");
  if (file.empty()) file = environment("NVML_SIM_SCENARIO");
  GL_TRY(scenario, read_scenario(file));
  GL_TRY_STATUS(clock_.start());
  scenario_ = std::make_unique<Scenario>(std::move(scenario));
  for (unsigned i = 0; i < scenario_->gpus.size(); ++i) gpus_.push_back(make_gpu(*scenario_, i));
  const std::string root = environment("GPU_LEDGER_SIM_ROOT");
  if (!root.empty()) root_ = std::make_unique<NodeRoot>(root, *scenario_, clock_.wall_micros(0));
  control_ = std::make_unique<Control>(environment("GPU_LEDGER_SIM_CONTROL"), clock_.wall_micros(0));
  return ok_status();
}

void Node::prepare() {
  if (load().ok()) look_at_clock();
}

void Node::reset() {
  root_.reset();
  std::vector<std::unique_ptr<Gpu>>().swap(gpus_);
  control_.reset();
  scenario_.reset();
  handles_.clear();
  instance_handles_.clear();
  compute_handles_.clear();
  event_sets_.clear();
  gpm_samples_.clear();
  users_ = 0;
  now_ = 0;
  std::string().swap(error_);
  clock_.set(0);
}

// A scenario with an error is read again at the next attempt, because it may have been corrected.
nvml::Return Node::init(const char* call) {
  const Status loaded = load();
  error_ = loaded.ok() ? "" : loaded.error().message;
  if (!loaded.ok()) return nvml::kUnknown;
  look_at_clock();
  error_ = control_->error();
  if (!error_.empty()) return nvml::kUnknown;
  if (!driver_loaded()) return nvml::kDriverNotLoaded;
  if (const int code = fault(call, nullptr)) return static_cast<nvml::Return>(code);
  if (users_ == 0) init_generation_ = generation();
  ++users_;
  return nvml::kSuccess;
}

nvml::Return Node::shutdown() {
  if (users_ == 0) return nvml::kUninitialized;
  if (--users_ == 0) event_sets_.clear();
  return nvml::kSuccess;
}

void Node::look_at_clock() {
  now_ = clock_.now();
  follow_control();
  if (root_) root_->keep(now_);
}

// A test must see a command that is wrong, so it is written to stderr, and no call works until it is corrected.
void Node::follow_control() {
  const std::string before = control_->error();
  const std::optional<Millis> changed_from = control_->look(now_, scenario_.get());
  const std::string& error = control_->error();
  if (!error.empty() && error != before) std::fprintf(stderr, "simulator: %s\n", error.c_str());
  if (!changed_from) return;
  for (unsigned i = 0; i < gpus_.size(); ++i) gpus_[i]->change(*scenario_, i, *changed_from);
  if (root_) root_->look_again();
}

bool Node::driver_loaded() const {
  for (const Reload& reload : scenario_->reloads) {
    if (now_ >= reload.at && now_ < reload.back) return false;
  }
  return true;
}

const std::string& Node::driver_version() const {
  const std::string* version = &scenario_->driver;
  for (const Reload& reload : scenario_->reloads) {
    if (now_ >= reload.back && !reload.driver.empty()) version = &reload.driver;
  }
  return *version;
}

unsigned Node::generation() const {
  unsigned count = 1;
  for (const Reload& reload : scenario_->reloads) count += now_ >= reload.back;
  return count;
}

Gpu& Node::gpu_now(unsigned gpu) {
  look_at_clock();
  gpus_[gpu]->advance(now_);
  return *gpus_[gpu];
}

bool Node::lost(unsigned gpu) const {
  for (const CallFault& fault : scenario_->faults) {
    if (fault.call.empty() && fault.gpu == gpu && now_ >= fault.from && now_ < fault.until) return true;
  }
  return false;
}

int Node::fault(const char* call, const unsigned* gpu) const {
  for (const CallFault& fault : scenario_->faults) {
    const bool meant = fault.call == call && (!fault.gpu || (gpu && *fault.gpu == *gpu));
    if (meant && now_ >= fault.from && now_ < fault.until) return fault.code;
  }
  return 0;
}

CallLatency Node::latency_of(const char* call, nvml::Device device) const {
  const nvml::DeviceHandle* const handle = find(device);
  CallLatency sum;
  for (const CallLatency& latency : scenario_->latencies) {
    const bool meant = latency.call == call && (!latency.gpu || (handle && *latency.gpu == handle->gpu));
    if (!meant || now_ < latency.from || now_ >= latency.until) continue;
    sum.ms += latency.ms;
    sum.hangs = sum.hangs || latency.hangs;
    sum.told = sum.told || latency.told;
  }
  return sum;
}

void Node::delay(const char* call, nvml::Device device) {
  std::unique_lock lock(mutex_);
  const auto sleep = [&](auto how_long) {
    ++delayed_;
    lock.unlock();
    std::this_thread::sleep_for(how_long);
    lock.lock();
    --delayed_;
  };
  CallLatency latency;
  for (bool told = false; scenario_; told = true) {
    look_at_clock();
    latency = latency_of(call, device);
    if (!latency.hangs) break;
    if (!told) control_->tell("hangs " + std::string(call));
    sleep(kLookAtHang);
  }
  if (latency.told && scenario_) control_->tell("called " + std::string(call));
  if (latency.ms > 0 && !clock_.is_virtual()) sleep(std::chrono::duration<double, std::milli>(latency.ms));
}

nvml::Return Node::enter(const char* call) {
  if (users_ == 0 || !scenario_) return nvml::kUninitialized;
  look_at_clock();
  if (!control_->error().empty()) return nvml::kUnknown;
  for (const std::string& missing : scenario_->missing_symbols) {
    if (missing == call) return nvml::kFunctionNotFound;
  }
  if (!driver_loaded()) return nvml::kDriverNotLoaded;
  // The driver was reloaded since this client's nvmlInit: the client must shut down and initialize again.
  if (init_generation_ != generation()) return nvml::kUninitialized;
  return static_cast<nvml::Return>(fault(call, nullptr));
}

nvml::Return Node::enter(const char* call, nvml::Device device, Target* target) {
  const nvml::Return refused = enter(call);
  if (refused != nvml::kSuccess) return refused;
  const nvml::DeviceHandle* handle = find(device);
  if (!handle || handle->generation != generation()) return nvml::kInvalidArgument;
  if (lost(handle->gpu)) return nvml::kGpuIsLost;
  if (const int code = fault(call, &handle->gpu)) return static_cast<nvml::Return>(code);
  target->device = device;
  target->index = handle->gpu;
  target->gpu = gpus_[handle->gpu].get();
  target->gpu->advance(now_);
  if (handle->instance >= 0) {
    target->instance = &target->gpu->spec().instances[static_cast<size_t>(handle->instance)];
    if (now_ < target->instance->from || now_ >= target->instance->until) return nvml::kInvalidArgument;
  }
  return nvml::kSuccess;
}

nvml::Device Node::handle(unsigned gpu, int instance) {
  for (nvml::DeviceHandle& known : handles_) {
    if (known.gpu == gpu && known.instance == instance && known.generation == generation()) return &known;
  }
  handles_.push_back({gpu, instance, generation()});
  return &handles_.back();
}

const nvml::DeviceHandle* Node::find(nvml::Device device) const {
  return find_handle(handles_, device);
}

nvml::GpuInstance Node::instance_handle(unsigned gpu, unsigned id) {
  for (nvml::GpuInstanceHandle& known : instance_handles_) {
    if (known.gpu == gpu && known.id == id) return &known;
  }
  instance_handles_.push_back({gpu, id});
  return &instance_handles_.back();
}

nvml::ComputeInstance Node::compute_handle(unsigned gpu, unsigned gpu_instance, unsigned id) {
  for (nvml::ComputeInstanceHandle& known : compute_handles_) {
    if (known.gpu == gpu && known.gpu_instance == gpu_instance && known.id == id) return &known;
  }
  compute_handles_.push_back({gpu, gpu_instance, id});
  return &compute_handles_.back();
}

const nvml::GpuInstanceHandle* Node::find(nvml::GpuInstance instance) const {
  return find_handle(instance_handles_, instance);
}

const nvml::ComputeInstanceHandle* Node::find(nvml::ComputeInstance instance) const {
  return find_handle(compute_handles_, instance);
}

nvml::Return copy_text(const std::string& text, char* out, unsigned length) {
  if (!out) return nvml::kInvalidArgument;
  if (length <= text.size()) return nvml::kInsufficientSize;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return nvml::kSuccess;
}

}  // namespace gpuledger::sim

// Time moves only by this when GPU_LEDGER_SIM_CLOCK=virtual; may be called before nvmlInit.
extern "C" __attribute__((visibility("default"))) void gpu_ledger_sim_set_time(double seconds) {
  gpuledger::sim::Node::get().set_time(seconds);
}

// Why nvmlInit failed, in one line; empty: it did not.
extern "C" __attribute__((visibility("default"))) const char* gpu_ledger_sim_error() {
  return gpuledger::sim::Node::get().error().c_str();
}

// Resets everything; the next nvmlInit reads the environment and the scenario again.
extern "C" __attribute__((visibility("default"))) void gpu_ledger_sim_reset() {
  auto& node = gpuledger::sim::Node::get();
  std::lock_guard lock(node.mutex());
  node.reset();
}
