// SPDX-License-Identifier: Apache-2.0
#include "http/background_worker.h"

#include <chrono>
#include <condition_variable>
#include <utility>

#include "base/mutex.h"
#include "http/fair_queue.h"
#include "http/thread_setup.h"

namespace gpuledger::http {
namespace {

constexpr auto kStopPatience = std::chrono::milliseconds(200);

struct Job {
  std::function<bool()> work;
  std::function<void(bool)> done;
};

}  // namespace

struct BackgroundWorker::Shared {
  Shared(size_t max_queue, size_t max_per_peer) : queue(max_queue, max_per_peer) {}

  Mutex mutex;
  std::condition_variable_any wake;
  FairQueue<Job> queue GL_GUARDED_BY(mutex);
  bool stopping GL_GUARDED_BY(mutex) = false;
};

BackgroundWorker::BackgroundWorker(size_t max_queue, size_t max_per_peer)
    : shared_(std::make_shared<Shared>(max_queue, max_per_peer)) {}

Status BackgroundWorker::start(Nanoseconds interval, std::function<void()> tick) {
  return thread_.start([shared = shared_, interval, tick = std::move(tick)] {
    set_up_thread("http-slow");
    run(*shared, interval, tick);
  });
}

BackgroundWorker::~BackgroundWorker() {
  stop();
}

bool BackgroundWorker::submit(const std::string& peer, std::function<bool()> work, std::function<void(bool)> done) {
  MutexLock lock(shared_->mutex);
  if (shared_->stopping || !shared_->queue.push(peer, {std::move(work), std::move(done)})) return false;
  shared_->wake.notify_one();
  return true;
}

void BackgroundWorker::stop() {
  MutexLock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->queue.clear();
  shared_->wake.notify_one();
  lock.unlock();
  // bcrypt cannot be interrupted, and a costly hash takes seconds.
  (void)thread_.end(kStopPatience);
}

void BackgroundWorker::run(Shared& shared, Nanoseconds interval, const std::function<void()>& tick) {
  const auto period = std::chrono::duration_cast<std::chrono::steady_clock::duration>(interval);
  auto next_tick = std::chrono::steady_clock::now() + period;
  const auto due = [&]() GL_REQUIRES(shared.mutex) { return shared.stopping || !shared.queue.empty(); };
  MutexLock lock(shared.mutex);
  while (!shared.stopping) {
    if (period.count() > 0)
      shared.wake.wait_until(lock, next_tick, due);
    else
      shared.wake.wait(lock, due);
    if (shared.stopping) break;
    if (period.count() > 0 && std::chrono::steady_clock::now() >= next_tick) {
      lock.unlock();
      tick();
      lock.lock();
      next_tick = std::chrono::steady_clock::now() + period;
      continue;
    }
    const auto job = shared.queue.pop();
    if (!job) continue;
    lock.unlock();
    const bool result = job->work();
    // Under the lock: stop() must not return, nor the io context end, between the check and the call.
    lock.lock();
    if (!shared.stopping) job->done(result);
  }
}

}  // namespace gpuledger::http
