// SPDX-License-Identifier: Apache-2.0
#include "sample/patient_source.h"

#include <optional>
#include <utility>

#include "base/borrowed_clock.h"
#include "base/mutex.h"

namespace gpuledger {

// Kept by the thread too, so that it may outlive the source.
struct PatientSource::Shared {
  explicit Shared(const Clock& given) : clock(given) {}

  BorrowedClock clock;
  std::unique_ptr<GpuSource> inner;  // the thread's own

  Mutex mutex;
  // One batch is asked for at a time.
  bool given_up GL_GUARDED_BY(mutex) = false;
  std::optional<SampleBatch> answer GL_GUARDED_BY(mutex);
  std::vector<std::pair<GpuUuid, uint64_t>> late_xids GL_GUARDED_BY(mutex);  // of calls that took too long

  void keep(SampleBatch batch);
};

void PatientSource::Shared::keep(SampleBatch batch) {
  const MutexLock lock(mutex);
  if (!given_up) {
    answer = std::move(batch);
    return;
  }
  for (const DeviceSample& device : batch.devices) {
    for (const uint64_t xid : device.xids) late_xids.emplace_back(device.description->uuid, xid);
  }
}

PatientSource::PatientSource(const Make& make, std::string name, Nanoseconds sample_interval, const Clock& clock,
                             Nanoseconds least_patience)
    : shared_(std::make_shared<Shared>(clock)),
      least_patience_(least_patience),
      patience_(patience_for(sample_interval)),
      clock_(clock) {
  health_.source = std::move(name);
  shared_->inner = make(shared_->clock);
}

Result<std::unique_ptr<PatientSource>> PatientSource::open(const Make& make, std::string name,
                                                           Nanoseconds sample_interval, const Clock& clock,
                                                           Nanoseconds least_patience) {
  std::unique_ptr<PatientSource> source(
      new PatientSource(make, std::move(name), sample_interval, clock, least_patience));
  GL_TRY_STATUS(source->worker_.start().about(source->health_.source));
  return source;
}

PatientSource::~PatientSource() {
  worker_.drop_waiting();
  worker_.post([shared = shared_] { shared->inner.reset(); });
  // Closing the driver takes a moment; a call that hangs is left behind.
  (void)worker_.end(hanging_ ? Nanoseconds(0) : patience_);
  shared_->clock.give_back();
}

void PatientSource::post(std::function<void(GpuSource&)> task) {
  worker_.post([shared = shared_, task = std::move(task)] { task(*shared->inner); });
}

bool PatientSource::attempt(std::function<void(GpuSource&)> task, Nanoseconds patience) {
  post(std::move(task));
  const bool done = worker_.wait(patience);
  if (!done) note_hang();
  return done;
}

void PatientSource::note_hang() {
  if (!std::exchange(hanging_, true)) ++hangs_;
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
  if (hanging_ && !worker_.idle()) return without_answer();
  hanging_ = false;
  MutexLock lock(shared_->mutex);
  shared_->given_up = false;
  lock.unlock();
  post([shared = shared_.get(), scan_processes](GpuSource& inner) { shared->keep(inner.sample(scan_processes)); });
  (void)worker_.wait(patience_);
  lock.lock();
  // The answer may have come after the wait. Whether it is too late is decided here, or its Xids would be lost.
  shared_->given_up = !shared_->answer;
  if (shared_->given_up) {
    note_hang();
    return without_answer();
  }
  SampleBatch batch = *std::exchange(shared_->answer, std::nullopt);
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
  if (!worker_.idle()) return {};
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

// Waits: the caller wants to reload the driver.
void PatientSource::release() {
  (void)attempt([](GpuSource& inner) { inner.release(); }, patience_);
}

void PatientSource::resume() {
  post([](GpuSource& inner) { inner.resume(); });
}

}  // namespace gpuledger
