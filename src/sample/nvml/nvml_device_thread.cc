// SPDX-License-Identifier: Apache-2.0
#include "sample/nvml/nvml_device_thread.h"

#include <utility>

#include "base/borrowed_clock.h"

namespace gpuledger::nvml {

// The worker's while it is busy, else the source's.
struct DeviceThread::Shared {
  Shared(GpuUuid uuid, const Clock& given) : clock(given), calls(clock), device(std::move(uuid)) {}

  BorrowedClock clock;
  Calls calls;
  NvmlDevice device;
  DeviceSample sample;
  std::vector<Pid> glanced;
};

DeviceThread::DeviceThread(GpuUuid uuid, const Clock& clock)
    : shared_(std::make_shared<Shared>(std::move(uuid), clock)), description_(shared_->device.absent().description) {}

DeviceThread::~DeviceThread() {
  (void)worker_.end(Nanoseconds(0));
  shared_->clock.give_back();
}

DeviceSample DeviceThread::absent() const {
  DeviceSample out;
  out.description = description_;
  return out;
}

Status DeviceThread::attach(Session& session, Device handle, unsigned index, const std::string& driver) {
  shared_->device.attach(session, handle, index, driver);
  description_ = shared_->device.absent().description;
  if (const Status started = worker_.start(); !started.ok()) {
    trouble_ = started.error().message;
    return started;
  }
  handle_ = handle;
  return ok_status();
}

void DeviceThread::detach(const FunctionTable& functions, const std::string& why) {
  handle_ = nullptr;
  answering_ = false;
  trouble_ = why;
  if (worker_.idle()) {
    shared_->device.detach(functions, why);
  } else if (auto driver = driver_.lock()) {
    // When the call returns, all handles are released to their driver, which is closed last.
    worker_.post([shared = shared_, driver] { shared->device.detach(driver->library.functions, ""); });
  }
}

void DeviceThread::settle(Calls& calls) {
  if (!hanging_ || !worker_.idle()) return;
  hanging_ = false;
  // If the driver is lost, the next call says so too; this call may be from an earlier driver.
  shared_->calls.forget_driver_gone();
  calls.absorb(shared_->calls);
  description_ = shared_->device.absent().description;
}

// The worker releases the driver before it is idle: until then the source holds the driver too, so that the source
// shuts the driver down, at its own time.
void DeviceThread::post(std::shared_ptr<Driver> driver, Look look) {
  asked_ = true;
  driver_ = driver;
  worker_.post([shared = shared_, driver = std::move(driver), look = std::move(look)] {
    Session session{driver->library.functions, shared->calls};
    look(*shared, session);
  });
}

void DeviceThread::ask(std::shared_ptr<Driver> driver, bool scan, Nanoseconds sample_interval, const Readings& wanted) {
  scan = scan || !answering_;
  post(std::move(driver), [scan, sample_interval, wanted](Shared& shared, Session& session) {
    shared.sample = shared.device.sample(session, scan, sample_interval, wanted);
  });
}

void DeviceThread::ask_glance(std::shared_ptr<Driver> driver) {
  post(std::move(driver), [](Shared& shared, Session& session) { shared.glanced = shared.device.glance(session); });
}

// False: it hangs.
bool DeviceThread::wait(std::chrono::steady_clock::time_point deadline, Calls& calls) {
  if (worker_.wait_until(deadline)) {
    calls.absorb(shared_->calls);
    return true;
  }
  hanging_ = true;
  answering_ = false;
  trouble_ = "does not answer; not asked again until its last call returns";
  calls.count_failure(kTimeout);
  return false;
}

std::vector<Pid> DeviceThread::wait_for_glance(std::chrono::steady_clock::time_point deadline, Calls& calls) {
  if (!std::exchange(asked_, false) || !wait(deadline, calls)) return {};
  return std::move(shared_->glanced);
}

DeviceSample DeviceThread::answer(std::chrono::steady_clock::time_point deadline, Calls& calls) {
  if (!std::exchange(asked_, false) || !wait(deadline, calls)) return absent();
  answering_ = shared_->device.answering();
  trouble_ = shared_->device.trouble();
  description_ = shared_->device.absent().description;
  return std::move(shared_->sample);
}

}  // namespace gpuledger::nvml
