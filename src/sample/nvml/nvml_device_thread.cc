#include "sample/nvml/nvml_device_thread.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "base/borrowed_clock.h"

namespace gpuledger::nvml {

namespace {

struct Question {
  std::shared_ptr<Driver> driver;
  bool glance = false;
  bool scan = false;
  Nanoseconds sample_interval{0};
  Readings wanted;
};

}  // namespace

// Kept by the thread too, so that it may outlive the source.
struct DeviceThread::Shared {
  Shared(GpuUuid uuid, const Clock& given) : clock(given), calls(clock), device(std::move(uuid)) {}

  BorrowedClock clock;
  // While busy the thread's, else the source's; the mutex hands them over.
  Calls calls;
  NvmlDevice device;
  DeviceSample sample;
  std::vector<Pid> glanced;

  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Question> question;
  bool busy = false;
  bool abandoned = false;  // the driver was let go meanwhile: give everything back to it when the call returns
  bool stop = false;
};

DeviceThread::DeviceThread(GpuUuid uuid, const Clock& clock)
    : shared_(std::make_shared<Shared>(std::move(uuid), clock)),
      description_(shared_->device.absent().description),
      thread_([shared = shared_] { run(shared); }) {}

DeviceThread::~DeviceThread() {
  std::unique_lock lock(shared_->mutex);
  shared_->stop = true;
  shared_->abandoned = shared_->busy;
  const bool busy = shared_->busy;
  shared_->changed.notify_all();
  lock.unlock();
  if (!busy) return;
  shared_->clock.give_back();
  thread_.detach();
}

void DeviceThread::run(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    shared->changed.wait(lock, [&] { return shared->question || shared->stop; });
    if (!shared->question) return;
    Question question = std::move(*shared->question);
    shared->question.reset();
    lock.unlock();
    const FunctionTable& functions = question.driver->library.functions;
    Session session{functions, shared->calls};
    if (question.glance) {
      shared->glanced = shared->device.glance(session);
    } else {
      shared->sample = shared->device.sample(session, question.scan, question.sample_interval, question.wanted);
    }
    lock.lock();
    if (shared->abandoned) {
      lock.unlock();  // these are calls into the driver again
      shared->device.detach(functions, "");
      question.driver.reset();
      lock.lock();
      shared->abandoned = false;
    }
    // Before busy ends: as long as it is busy and not abandoned the source holds the driver too, so that it is the
    // source that shuts the driver down, at a time of its choice.
    question.driver.reset();
    shared->busy = false;
    shared->changed.notify_all();
  }
}

DeviceSample DeviceThread::absent() const {
  DeviceSample out;
  out.description = description_;
  return out;
}

void DeviceThread::attach(Session& session, Device handle, unsigned index, const std::string& driver) {
  shared_->device.attach(session, handle, index, driver);
  handle_ = handle;
  description_ = shared_->device.absent().description;
}

void DeviceThread::detach(const FunctionTable& functions, const std::string& why) {
  handle_ = nullptr;
  answering_ = false;
  trouble_ = why;
  const std::lock_guard lock(shared_->mutex);
  if (shared_->busy) {
    shared_->abandoned = true;
  } else {
    shared_->device.detach(functions, why);
  }
}

void DeviceThread::settle(Calls& calls) {
  if (!hanging_) return;
  const std::lock_guard lock(shared_->mutex);
  if (shared_->busy) return;
  hanging_ = false;
  // If the driver is gone the next call says so too; this one may have been of an earlier driver.
  shared_->calls.forget_driver_gone();
  calls.absorb(shared_->calls);
  description_ = shared_->device.absent().description;
}

void DeviceThread::ask(std::shared_ptr<Driver> driver, bool scan, Nanoseconds sample_interval, const Readings& wanted) {
  asked_ = true;
  const std::lock_guard lock(shared_->mutex);
  shared_->question = {std::move(driver), false, scan || !answering_, sample_interval, wanted};
  shared_->busy = true;
  shared_->changed.notify_all();
}

void DeviceThread::ask_glance(std::shared_ptr<Driver> driver) {
  asked_ = true;
  const std::lock_guard lock(shared_->mutex);
  shared_->question = {std::move(driver), true, false, {}, {}};
  shared_->busy = true;
  shared_->changed.notify_all();
}

// False: it hangs.
bool DeviceThread::wait(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::time_point deadline,
                        Calls& calls) {
  if (shared_->changed.wait_until(lock, deadline, [this] { return !shared_->busy; })) {
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
  if (!std::exchange(asked_, false)) return {};
  std::unique_lock lock(shared_->mutex);
  if (!wait(lock, deadline, calls)) return {};
  return std::move(shared_->glanced);
}

DeviceSample DeviceThread::answer(std::chrono::steady_clock::time_point deadline, Calls& calls) {
  if (!std::exchange(asked_, false)) return absent();
  std::unique_lock lock(shared_->mutex);
  if (!wait(lock, deadline, calls)) return absent();
  answering_ = shared_->device.answering();
  trouble_ = shared_->device.trouble();
  description_ = shared_->device.absent().description;
  return std::move(shared_->sample);
}

}  // namespace gpuledger::nvml
