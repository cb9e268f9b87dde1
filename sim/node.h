// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "control.h"
#include "exports.h"
#include "gpu.h"
#include "node_root.h"
#include "scenario.h"
#include "sim_clock.h"

// What the driver's opaque pointers point to here.
struct gpuledger::nvml::DeviceHandle {
  unsigned gpu = 0;
  int instance = -1;  // position in GpuSpec::instances; -1: the whole GPU
  unsigned generation = 0;
};
struct gpuledger::nvml::GpuInstanceHandle {
  unsigned gpu = 0;
  unsigned id = 0;
};
struct gpuledger::nvml::ComputeInstanceHandle {
  unsigned gpu = 0;
  unsigned gpu_instance = 0;
  unsigned id = 0;
};
struct gpuledger::nvml::GpmSampleHandle {
  bool filled = false;
  gpuledger::sim::ActivitySum sum;
};
struct gpuledger::nvml::EventSetHandle {
  struct Registration {
    unsigned long long types = 0;
    gpuledger::sim::Millis since = 0;
  };
  std::map<unsigned, Registration> gpus;
  std::set<size_t> delivered;  // positions in the list of all events
};

namespace gpuledger::sim {

// The GPU a call is about, advanced to now.
struct Target {
  Gpu* gpu = nullptr;
  unsigned index = 0;
  const MigSpec* instance = nullptr;  // null: the whole GPU
  nvml::Device device = nullptr;
};

// The simulated machine: one per loaded library. Everything is called with the mutex held, but for mutex()
// and delay().
class Node {
 public:
  static Node& get();
  // The library is unloaded, or the program ends: the files go. A call that hangs in here may outlive main, so what it
  // uses stays.
  static void leave();

  std::mutex& mutex() { return mutex_; }
  // Sleeps as long as the real driver takes for this call, but in virtual time it does not. Returns from a call that
  // hangs when the fault is over. Without the mutex.
  void delay(const char* call, nvml::Device device = nullptr);

  // Sets up the node and its files before a client opens the driver. Errors are returned by init().
  void prepare();
  nvml::Return init(const char* call);
  nvml::Return shutdown();
  void set_time(double seconds) { clock_.set(seconds); }
  void reset();
  const std::string& error() const { return error_; }

  // Whether the call may continue; if not, its result.
  nvml::Return enter(const char* call);
  nvml::Return enter(const char* call, nvml::Device device, Target* target);

  bool loaded() const { return scenario_ != nullptr; }
  const Scenario& scenario() const { return *scenario_; }
  const std::string& driver_version() const;
  SimClock& clock() { return clock_; }
  Millis now() const { return now_; }
  unsigned long long wall_micros(Millis t) const { return static_cast<unsigned long long>(clock_.wall_micros(t)); }
  bool lost(unsigned gpu) const;
  // Also advances the GPU to the current time.
  Gpu& gpu_now(unsigned gpu);
  nvml::Device handle(unsigned gpu, int instance = -1);
  const nvml::DeviceHandle* find(nvml::Device device) const;
  nvml::GpuInstance instance_handle(unsigned gpu, unsigned id);
  nvml::ComputeInstance compute_handle(unsigned gpu, unsigned gpu_instance, unsigned id);
  // Null: not one of ours.
  const nvml::GpuInstanceHandle* find(nvml::GpuInstance instance) const;
  const nvml::ComputeInstanceHandle* find(nvml::ComputeInstance instance) const;
  std::map<nvml::EventSet, std::unique_ptr<nvml::EventSetHandle>>& event_sets() { return event_sets_; }
  std::map<nvml::GpmSample, std::unique_ptr<nvml::GpmSampleHandle>>& gpm_samples() { return gpm_samples_; }

 private:
  Status load();
  void look_at_clock();
  bool driver_loaded() const;
  unsigned generation() const;
  int fault(const char* call, const unsigned* gpu) const;
  void follow_control();
  // What the faults of this moment do to a call, added up.
  CallLatency latency_of(const char* call, nvml::Device device) const;

  std::mutex mutex_;
  SimClock clock_;
  std::string error_;
  std::unique_ptr<Scenario> scenario_;
  std::unique_ptr<Control> control_;
  unsigned delayed_ = 0;  // calls that sleep in delay()
  bool left_ = false;
  std::vector<std::unique_ptr<Gpu>> gpus_;
  std::unique_ptr<NodeRoot> root_;
  Millis now_ = 0;
  unsigned users_ = 0;
  unsigned init_generation_ = 0;
  std::list<nvml::DeviceHandle> handles_;  // never moved: clients keep pointers
  std::list<nvml::GpuInstanceHandle> instance_handles_;
  std::list<nvml::ComputeInstanceHandle> compute_handles_;
  std::map<nvml::EventSet, std::unique_ptr<nvml::EventSetHandle>> event_sets_;
  std::map<nvml::GpmSample, std::unique_ptr<nvml::GpmSampleHandle>> gpm_samples_;
};

// A call about the driver, not about a GPU.
template <typename Body>
nvml::Return on_driver(const char* call, Body body) {
  Node& node = Node::get();
  node.delay(call);
  std::lock_guard lock(node.mutex());
  const nvml::Return refused = node.enter(call);
  return refused != nvml::kSuccess ? refused : body(node);
}

// A call about a GPU or a MIG instance.
template <typename Body>
nvml::Return on_device(const char* call, nvml::Device device, Body body) {
  Node& node = Node::get();
  node.delay(call, device);
  std::lock_guard lock(node.mutex());
  Target target;
  const nvml::Return refused = node.enter(call, device, &target);
  return refused != nvml::kSuccess ? refused : body(node, target);
}

// A call that only a whole GPU can answer.
template <typename Body>
nvml::Return on_whole_gpu(const char* call, nvml::Device device, Body body) {
  return on_device(call, device, [&](Node& node, Target& target) {
    return target.instance ? nvml::kNotSupported : body(node, target);
  });
}

// The same, where the GPU's number does not matter.
template <typename Body>
nvml::Return on_gpu(const char* call, nvml::Device device, Body body) {
  return on_whole_gpu(call, device, [&](Node& node, Target& target) { return body(node, *target.gpu); });
}

// The same, for an answer that is one number.
template <typename T, typename Getter>
nvml::Return read_gpu(const char* call, nvml::Device device, T* out, Getter getter) {
  return on_gpu(call, device, [&](Node&, Gpu& gpu) {
    if (!out) return nvml::kInvalidArgument;
    *out = static_cast<T>(getter(gpu));
    return nvml::kSuccess;
  });
}

nvml::Return copy_text(const std::string& text, char* out, unsigned length);

}  // namespace gpuledger::sim
