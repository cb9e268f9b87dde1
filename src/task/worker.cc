// SPDX-License-Identifier: Apache-2.0
#include "task/worker.h"

#include <condition_variable>
#include <deque>
#include <utility>

#include "base/mutex.h"

namespace gpuledger::task {
namespace {

// An idle thread needs a moment to end, which may be long on a busy machine.
constexpr Nanoseconds kUntilIdleEnds = std::chrono::minutes(1);

}  // namespace

struct Worker::Shared {
  Mutex mutex;
  std::condition_variable_any changed;
  std::deque<Task> tasks GL_GUARDED_BY(mutex);
  bool busy GL_GUARDED_BY(mutex) = false;
  bool ending GL_GUARDED_BY(mutex) = false;

  bool idle() const GL_REQUIRES(mutex) { return !busy && tasks.empty(); }
};

Worker::Worker() : shared_(std::make_shared<Shared>()) {}

Status Worker::start() {
  if (started_) return ok_status();
  GL_TRY_STATUS(thread_.start([shared = shared_] { run(*shared); }));
  started_ = true;
  return ok_status();
}

void Worker::run(Shared& shared) {
  MutexLock lock(shared.mutex);
  for (;;) {
    shared.changed.wait(lock, [&]() GL_REQUIRES(shared.mutex) { return shared.ending || !shared.tasks.empty(); });
    if (shared.tasks.empty()) return;
    Task task = std::move(shared.tasks.front());
    shared.tasks.pop_front();
    shared.busy = true;
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
    shared.busy = false;
    shared.changed.notify_all();
  }
}

void Worker::post(Task task) {
  const MutexLock lock(shared_->mutex);
  if (shared_->ending) return;
  shared_->tasks.push_back(std::move(task));
  shared_->changed.notify_all();
}

bool Worker::idle() const {
  const MutexLock lock(shared_->mutex);
  return shared_->idle();
}

bool Worker::wait_until(std::chrono::steady_clock::time_point deadline) const {
  MutexLock lock(shared_->mutex);
  return shared_->changed.wait_until(lock, deadline, [this]() GL_REQUIRES(shared_->mutex) { return shared_->idle(); });
}

void Worker::drop_waiting() {
  std::deque<Task> dropped;  // freed without the lock
  const MutexLock lock(shared_->mutex);
  dropped.swap(shared_->tasks);
  shared_->changed.notify_all();
}

bool Worker::end(Nanoseconds patience) {
  MutexLock lock(shared_->mutex);
  shared_->ending = true;
  shared_->changed.notify_all();
  const bool idle = shared_->idle();
  lock.unlock();
  return thread_.end(idle ? kUntilIdleEnds : patience);
}

}  // namespace gpuledger::task
