// SPDX-License-Identifier: Apache-2.0
#include "task/leavable_thread.h"

#include <atomic>
#include <condition_variable>
#include <utility>

#include "base/mutex.h"

namespace gpuledger::task {
namespace {

std::atomic<bool> one_was_left{false};

}  // namespace

struct LeavableThread::Over {
  Mutex mutex;
  std::condition_variable_any changed;
  bool yes GL_GUARDED_BY(mutex) = false;
};

LeavableThread::LeavableThread(std::function<void()> body) : over_(std::make_shared<Over>()) {
  thread_ = std::thread([over = over_, body = std::move(body)]() mutable {
    body();
    body = nullptr;  // what it owned may hang too when it is freed
    const MutexLock lock(over->mutex);
    over->yes = true;
    over->changed.notify_all();
  });
}

bool LeavableThread::end(Nanoseconds patience) {
  const bool left = !thread_.joinable();
  MutexLock lock(over_->mutex);
  const bool over = over_->changed.wait_for(lock, left ? Nanoseconds(0) : patience,
                                            [this]() GL_REQUIRES(over_->mutex) { return over_->yes; });
  lock.unlock();
  if (left) return over;
  if (over) {
    thread_.join();
  } else {
    one_was_left = true;
    thread_.detach();
  }
  return over;
}

bool any_left_behind() {
  return one_was_left;
}

}  // namespace gpuledger::task
