// SPDX-License-Identifier: Apache-2.0
#include "sample/switch_trace/tracer_thread.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <utility>

#include "base/borrowed_clock.h"
#include "base/mutex.h"

namespace gpuledger::switch_trace {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(700);  // SIGTERM may take two seconds in all
constexpr Nanoseconds kLongestSleep = std::chrono::hours(1);
constexpr size_t kMostBins = 15'000;  // five minutes without a report

}  // namespace

struct TracerThread::Shared {
  explicit Shared(const Clock& given) : clock(given) {}

  BorrowedClock clock;
  Mutex mutex;
  std::condition_variable_any changed;
  bool stop GL_GUARDED_BY(mutex) = false;
  bool look_now GL_GUARDED_BY(mutex) = false;
  bool suspicious GL_GUARDED_BY(mutex) = false;
  bool resting GL_GUARDED_BY(mutex) = false;
  TraceReport report GL_GUARDED_BY(mutex);
};

Result<std::unique_ptr<TracerThread>> TracerThread::start(std::shared_ptr<DriverDoor> door, TraceOptions options,
                                                          const Clock& clock) {
  auto shared = std::make_shared<Shared>(clock);
  std::unique_ptr<TracerThread> tracer(new TracerThread(shared));
  GL_TRY_STATUS(tracer->thread_.start([shared, door = std::move(door), options = std::move(options)] {
    pthread_setname_np(pthread_self(), "switch-trace");
    run(*shared, TraceLoop(door, options, shared->clock));
  }));
  return tracer;
}

void TracerThread::run(Shared& shared, TraceLoop loop) {
  MutexLock lock(shared.mutex);
  while (!shared.stop) {
    if (std::exchange(shared.suspicious, false)) loop.suspect_silence();
    shared.look_now = false;
    lock.unlock();
    const Nanoseconds due = loop.step();
    TraceReport news = loop.take_report();
    const Nanoseconds left = std::clamp(due - shared.clock.now().steady, Nanoseconds(0), kLongestSleep);
    lock.lock();
    shared.report.add(std::move(news));
    if (auto& bins = shared.report.bins; bins.size() > kMostBins) bins.erase(bins.begin(), bins.end() - kMostBins);
    shared.resting = true;
    shared.changed.wait_for(lock, left, [&]() GL_REQUIRES(shared.mutex) { return shared.stop || shared.look_now; });
    shared.resting = false;
  }
}

TracerThread::~TracerThread() {
  ask_to_end();
  (void)thread_.end(kPatience);
  shared_->clock.give_back();
}

void TracerThread::ask_to_end() {
  MutexLock lock(shared_->mutex);
  shared_->stop = true;
  shared_->changed.notify_all();
}

void TracerThread::look_now() {
  MutexLock lock(shared_->mutex);
  shared_->look_now = true;
  shared_->changed.notify_all();
}

bool TracerThread::at_rest() const {
  MutexLock lock(shared_->mutex);
  return shared_->resting && !shared_->look_now;
}

void TracerThread::suspect_silence() {
  MutexLock lock(shared_->mutex);
  shared_->suspicious = true;
}

TraceReport TracerThread::take_report() {
  MutexLock lock(shared_->mutex);
  TraceReport report = std::move(shared_->report);
  shared_->report = TraceReport{};
  shared_->report.tracing = report.tracing;
  shared_->report.trouble = report.trouble;
  shared_->report.given_up = report.given_up;
  return report;
}

}  // namespace gpuledger::switch_trace
