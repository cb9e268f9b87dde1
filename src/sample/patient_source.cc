#include "sample/patient_source.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "base/borrowed_clock.h"

namespace gpuledger {
namespace {

// More than a source takes that waits for one of its GPUs, which is 2 s or two intervals.
Nanoseconds patience_for(Nanoseconds sample_interval) {
  return std::max<Nanoseconds>(std::chrono::seconds(5), 3 * sample_interval);
}

}  // namespace

// Kept by the thread too, so that it may outlive the source.
struct PatientSource::Shared {
  explicit Shared(const Clock& given) : clock(given) {}

  BorrowedClock clock;
  std::unique_ptr<GpuSource> inner;  // the thread's own

  std::mutex mutex;
  std::condition_variable changed;
  // Under the mutex.
  std::deque<std::function<void(GpuSource&)>> tasks;
  bool busy = false;
  bool stop = false;
  bool ended = false;
  std::vector<std::pair<GpuUuid, uint64_t>> late_xids;  // of batches nobody waited for any more

  bool idle() const { return !busy && tasks.empty(); }
};

PatientSource::PatientSource(const Make& make, std::string name, Nanoseconds sample_interval, const Clock& clock)
    : shared_(std::make_shared<Shared>(clock)), patience_(patience_for(sample_interval)), clock_(clock) {
  health_.source = std::move(name);
  shared_->inner = make(shared_->clock);
  thread_ = std::thread([shared = shared_] { run(shared); });
}

PatientSource::~PatientSource() {
  std::unique_lock lock(shared_->mutex);
  shared_->stop = true;
  shared_->changed.notify_all();
  // Closing the driver takes a moment; a call that hangs is left to itself.
  const bool ended =
      shared_->changed.wait_for(lock, hanging_ ? Nanoseconds(0) : patience_, [this] { return shared_->ended; });
  lock.unlock();
  if (ended) {
    thread_.join();
  } else {
    shared_->clock.give_back();
    thread_.detach();
  }
}

void PatientSource::run(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    shared->changed.wait(lock, [&] { return shared->stop || !shared->tasks.empty(); });
    if (shared->stop) break;
    const auto task = std::move(shared->tasks.front());
    shared->tasks.pop_front();
    shared->busy = true;
    lock.unlock();
    task(*shared->inner);
    lock.lock();
    shared->busy = false;
    shared->changed.notify_all();
  }
  lock.unlock();
  shared->inner.reset();
  lock.lock();
  shared->ended = true;
  shared->changed.notify_all();
}

void PatientSource::post(std::function<void(GpuSource&)> task) {
  const std::lock_guard lock(shared_->mutex);
  shared_->tasks.push_back(std::move(task));
  shared_->changed.notify_all();
}

bool PatientSource::attempt(std::function<void(GpuSource&)> task, Nanoseconds patience) {
  post(std::move(task));
  std::unique_lock lock(shared_->mutex);
  const bool done = shared_->changed.wait_for(lock, patience, [this] { return shared_->idle(); });
  if (!done && !std::exchange(hanging_, true)) ++hangs_;
  return done;
}

SampleBatch PatientSource::without_answer() {
  SampleBatch batch;
  batch.at = clock_.now();
  for (const auto& description : known_) batch.devices.emplace_back().description = description;
  batch.health = health_;
  batch.health.up = false;
  batch.health.reason = "the driver does not answer; asked again when its last call returns";
  batch.health.errors[code_name(Code::kTimeout)] += hangs_;
  batch.call_durations = durations_;
  return batch;
}

SampleBatch PatientSource::sample(bool scan_processes) {
  {
    const std::lock_guard lock(shared_->mutex);
    if (hanging_ && !shared_->idle()) return without_answer();
    hanging_ = false;
  }
  const auto answer = std::make_shared<SampleBatch>();
  const auto given_up = std::make_shared<bool>(false);  // under the mutex
  const auto task = [answer, given_up, shared = shared_.get(), scan_processes](GpuSource& inner) {
    SampleBatch batch = inner.sample(scan_processes);
    const std::lock_guard lock(shared->mutex);
    if (!*given_up) {
      *answer = std::move(batch);
      return;
    }
    for (const DeviceSample& device : batch.devices) {
      for (const uint64_t xid : device.xids) shared->late_xids.emplace_back(device.description->uuid, xid);
    }
  };
  if (!attempt(task, patience_)) {
    const std::lock_guard lock(shared_->mutex);
    *given_up = true;
    return without_answer();
  }
  const std::lock_guard lock(shared_->mutex);
  SampleBatch batch = std::move(*answer);
  known_.clear();
  for (DeviceSample& device : batch.devices) {
    known_.push_back(device.description);
    for (const auto& [gpu, xid] : shared_->late_xids) {
      if (gpu == device.description->uuid) device.xids.push_back(xid);
    }
  }
  shared_->late_xids.clear();
  health_ = batch.health;
  durations_ = batch.call_durations;
  if (hangs_ > 0) batch.health.errors[code_name(Code::kTimeout)] += hangs_;
  return batch;
}

std::vector<Pid> PatientSource::glance() {
  {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->idle()) return {};
  }
  const auto there = std::make_shared<std::vector<Pid>>();
  const auto task = [there](GpuSource& inner) { *there = inner.glance(); };
  return attempt(task, patience_) ? std::move(*there) : std::vector<Pid>();
}

void PatientSource::change_interval(Nanoseconds sample_interval) {
  patience_ = patience_for(sample_interval);
  post([sample_interval](GpuSource& inner) { inner.change_interval(sample_interval); });
}

void PatientSource::change_readings(const Readings& wanted) {
  post([wanted](GpuSource& inner) { inner.change_readings(wanted); });
}

// Waited for: whoever asks for it wants to reload the driver.
void PatientSource::release() {
  (void)attempt([](GpuSource& inner) { inner.release(); }, patience_);
}

void PatientSource::resume() {
  post([](GpuSource& inner) { inner.resume(); });
}

}  // namespace gpuledger
