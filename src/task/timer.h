// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <stop_token>

#include "base/mutex.h"

namespace gpuledger::task {

// The time of a thread that waits, and its waits. A test has one that it moves by hand.
class Timer {
 public:
  using Duration = std::chrono::nanoseconds;
  using Time = std::chrono::steady_clock::time_point;

  virtual ~Timer() = default;
  virtual Time now() const = 0;
  // Waits until the condition holds, the time has come or a stop is requested. Who changes the condition notifies
  // `changed`. True: the condition holds.
  virtual bool wait_until(MutexLock& lock, std::condition_variable_any& changed, const std::stop_token& stop, Time due,
                          const std::function<bool()>& condition) const = 0;

  // Only a stop ends it early. False: stopped.
  bool sleep(const std::stop_token& stop, Duration time) const {
    Mutex mutex;
    std::condition_variable_any never;
    MutexLock lock(mutex);
    wait_until(lock, never, stop, now() + time, [] { return false; });
    return !stop.stop_requested();
  }
};

class SystemTimer final : public Timer {
 public:
  Time now() const override { return std::chrono::steady_clock::now(); }
  bool wait_until(MutexLock& lock, std::condition_variable_any& changed, const std::stop_token& stop, Time due,
                  const std::function<bool()>& condition) const override {
    return changed.wait_until(lock, stop, due, [&] { return condition(); });
  }
};

inline const Timer& system_timer() {
  static const SystemTimer timer;
  return timer;
}

}  // namespace gpuledger::task
