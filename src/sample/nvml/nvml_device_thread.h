// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "sample/nvml/nvml_calls.h"
#include "sample/nvml/nvml_device.h"
#include "sample/nvml/nvml_driver.h"
#include "task/worker.h"

namespace gpuledger::nvml {

// One GPU and its thread, so that GPUs are sampled in parallel and one that hangs in the driver blocks no other. All
// functions are for the source's thread; only answer() waits for the GPU. For a hanging GPU they return the last known
// data.
class DeviceThread {
 public:
  DeviceThread(GpuUuid uuid, const Clock& clock);
  // A thread that hangs in the driver is left behind.
  ~DeviceThread();
  DeviceThread(const DeviceThread&) = delete;
  DeviceThread& operator=(const DeviceThread&) = delete;

  const GpuUuid& uuid() const { return description_->uuid; }
  uint32_t index() const { return description_->index; }
  Device handle() const { return handle_; }
  bool answering() const { return answering_; }
  bool hanging() const { return hanging_; }  // until settle() sees its call return
  const std::string& trouble() const { return trouble_; }
  DeviceSample absent() const;

  // Not while it hangs. Error: its thread cannot be made now. The GPU is not asked until another attempt succeeds.
  Status attach(Session& session, Device handle, unsigned index, const std::string& driver);
  void detach(const FunctionTable& functions, const std::string& why);

  // Checks whether a hanging call has returned. Its answer is stale and dropped; the GPU may be read again.
  void settle(Calls& calls);
  // Starts one read of the GPU. Not while it hangs.
  void ask(std::shared_ptr<Driver> driver, bool scan, Nanoseconds sample_interval, const Readings& wanted);
  // Starts a glance; wait_for_glance() ends it and returns the pids. Not while it hangs.
  void ask_glance(std::shared_ptr<Driver> driver);
  std::vector<Pid> wait_for_glance(std::chrono::steady_clock::time_point deadline, Calls& calls);
  // The answer to ask(), or absent() if none came until the deadline or nothing was asked.
  DeviceSample answer(std::chrono::steady_clock::time_point deadline, Calls& calls);

 private:
  struct Shared;
  using Look = std::function<void(Shared&, Session&)>;
  void post(std::shared_ptr<Driver> driver, Look look);
  bool wait(std::chrono::steady_clock::time_point deadline, Calls& calls);

  std::shared_ptr<Shared> shared_;
  std::shared_ptr<const DeviceDescription> description_;
  Device handle_ = nullptr;
  bool answering_ = false;
  bool asked_ = false;
  bool hanging_ = false;
  std::string trouble_;
  std::weak_ptr<Driver> driver_;  // the last one used
  task::Worker worker_;
};

}  // namespace gpuledger::nvml
