// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/sampler.h"

#include <malloc.h>

namespace gpuledger::app {
namespace {

// The period of the driver's samples.
constexpr auto kGlancePeriod = std::chrono::milliseconds(100);
// How often free memory between used blocks, left by scrapes and ended processes, is returned to the system. Takes less
// than a millisecond.
constexpr auto kTrimPeriod = std::chrono::seconds(3);

}  // namespace

Sampler::Sampler(Pipeline& pipeline, Nanoseconds interval, SnapshotCell& cell)
    : pipeline_(pipeline), cell_(cell), interval_(interval) {}

Sampler::~Sampler() = default;

Status Sampler::start() {
  return thread_.start([this](const std::stop_token& stop) { run(stop); });
}

void Sampler::post(std::function<void(Pipeline&)> task) {
  const MutexLock lock(mutex_);
  tasks_.push_back(std::move(task));
  wake_.notify_all();
}

void Sampler::change_interval(Nanoseconds interval) {
  const MutexLock lock(mutex_);
  interval_ = interval;
  wake_.notify_all();
}

bool Sampler::stop(Nanoseconds patience) {
  thread_.request_stop();
  MutexLock lock(mutex_);
  return wake_.wait_for(lock, patience, [this]() GL_REQUIRES(mutex_) { return ended_; });
}

void Sampler::run(const std::stop_token& stop) {
  using SteadyClock = std::chrono::steady_clock;
  const auto has_tasks = [this]() GL_REQUIRES(mutex_) { return !tasks_.empty(); };
  SteadyClock::time_point next = SteadyClock::now();
  SteadyClock::time_point trimmed = next - kTrimPeriod;  // the start leaves much free memory
  while (!stop.stop_requested()) {
    MutexLock lock(mutex_);
    next += interval_;
    // After a stall (a suspended machine, a driver that hung) missed cycles are skipped.
    if (next < SteadyClock::now()) next = SteadyClock::now() + interval_;
    // Glances in between show short processes, and how busy the GPU was meanwhile.
    for (auto glance = SteadyClock::now() + kGlancePeriod; glance + kGlancePeriod / 2 < next; glance += kGlancePeriod) {
      if (wake_.wait_until(lock, stop, glance, has_tasks) || stop.stop_requested()) break;
      lock.unlock();
      pipeline_.glance();
      lock.lock();
    }
    wake_.wait_until(lock, stop, next, has_tasks);
    if (stop.stop_requested()) break;
    const auto tasks = std::exchange(tasks_, {});
    lock.unlock();
    for (const auto& task : tasks) task(pipeline_);
    if (!tasks.empty()) next = SteadyClock::now();
    cell_.store(pipeline_.run_cycle());
    if (SteadyClock::now() - trimmed >= kTrimPeriod) {
      ::malloc_trim(0);
      trimmed = SteadyClock::now();
    }
  }
  const MutexLock lock(mutex_);
  ended_ = true;
  wake_.notify_all();
}

}  // namespace gpuledger::app
