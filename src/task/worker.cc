// SPDX-License-Identifier: Apache-2.0
#include "task/worker.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace gpuledger::task {
namespace {

// An idle thread needs a moment to end, which may be long on a busy machine.
constexpr Nanoseconds kUntilIdleEnds = std::chrono::minutes(1);

}  // namespace

struct Worker::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  // Under the mutex.
  std::deque<Task> tasks;
  bool busy = false;
  bool ending = false;

  bool idle() const { return !busy && tasks.empty(); }
};

Worker::Worker() : shared_(std::make_shared<Shared>()), thread_([shared = shared_] { run(*shared); }) {}

void Worker::run(Shared& shared) {
  std::unique_lock lock(shared.mutex);
  for (;;) {
    shared.changed.wait(lock, [&] { return shared.ending || !shared.tasks.empty(); });
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
  const std::lock_guard lock(shared_->mutex);
  if (shared_->ending) return;
  shared_->tasks.push_back(std::move(task));
  shared_->changed.notify_all();
}

bool Worker::idle() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->idle();
}

bool Worker::wait_until(std::chrono::steady_clock::time_point deadline) const {
  std::unique_lock lock(shared_->mutex);
  return shared_->changed.wait_until(lock, deadline, [this] { return shared_->idle(); });
}

void Worker::drop_waiting() {
  std::deque<Task> dropped;  // freed without the lock
  const std::lock_guard lock(shared_->mutex);
  dropped.swap(shared_->tasks);
  shared_->changed.notify_all();
}

bool Worker::end(Nanoseconds patience) {
  std::unique_lock lock(shared_->mutex);
  shared_->ending = true;
  shared_->changed.notify_all();
  const bool idle = shared_->idle();
  lock.unlock();
  return thread_.end(idle ? kUntilIdleEnds : patience);
}

}  // namespace gpuledger::task
