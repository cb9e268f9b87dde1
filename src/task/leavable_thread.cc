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

Status LeavableThread::start(std::function<void()> body) {
  auto over = std::make_shared<Over>();
  GL_TRY_STATUS(thread_.start([over, body = std::move(body)](const std::stop_token&) mutable {
    body();
    body = nullptr;  // what it owned may hang too when it is freed
    const MutexLock lock(over->mutex);
    over->yes = true;
    over->changed.notify_all();
  }));
  over_ = std::move(over);
  return ok_status();
}

bool LeavableThread::end(Nanoseconds patience) {
  if (!over_) return true;
  const bool left = !thread_.running();
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
