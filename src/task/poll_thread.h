// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <stop_token>

#include "base/mutex.h"
#include "task/thread.h"
#include "task/timer.h"

namespace gpuledger::task {

// A thread that polls at once, then each time after the delay that the last poll returned, and sooner on request. The
// destructor waits for a running poll, which must end soon after its stop token is set.
class PollThread {
 public:
  static constexpr auto kLeastApart = std::chrono::seconds(1);

  struct Next {
    std::chrono::nanoseconds wait;
    bool sooner_if_asked = true;  // false after a failure: requests must not undo a back-off
  };
  using Look = std::function<Next(std::stop_token)>;

  explicit PollThread(Look look, const Timer& timer = system_timer())
      : look_(std::move(look)),
        timer_(timer),
        started_(thread_.start([this](const std::stop_token& stop) { run(stop); })) {}

  // An error: there is no thread, and nothing polls.
  const Status& started() const { return started_; }

  // Requests a poll. From any thread; never blocks for long. Several requests within a second cause one poll.
  void ask() {
    const MutexLock lock(mutex_);
    asked_ = true;
    changed_.notify_all();
  }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto began = timer_.now();
      const Next next = look_(stop);
      const auto due = timer_.now() + next.wait;
      MutexLock lock(mutex_);
      if (next.sooner_if_asked &&
          timer_.wait_until(lock, changed_, stop, due, [this]() GL_REQUIRES(mutex_) { return asked_; })) {
        timer_.wait_until(lock, changed_, stop, began + kLeastApart, [] { return false; });
      } else {
        timer_.wait_until(lock, changed_, stop, due, [] { return false; });
      }
      asked_ = false;
    }
  }

  const Look look_;
  const Timer& timer_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool asked_ GL_GUARDED_BY(mutex_) = false;
  Thread thread_;  // last but for its own outcome: it uses the others
  const Status started_;
};

}  // namespace gpuledger::task
