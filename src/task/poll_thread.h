// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <stop_token>
#include <thread>

#include "base/mutex.h"

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

  explicit PollThread(Look look)
      : look_(std::move(look)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

  // Requests a poll. From any thread; never blocks for long. Several requests within a second cause one poll.
  void ask() {
    const MutexLock lock(mutex_);
    asked_ = true;
    changed_.notify_all();
  }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto began = std::chrono::steady_clock::now();
      const Next next = look_(stop);
      const auto due = std::chrono::steady_clock::now() + next.wait;
      MutexLock lock(mutex_);
      if (next.sooner_if_asked &&
          changed_.wait_until(lock, stop, due, [this]() GL_REQUIRES(mutex_) { return asked_; })) {
        changed_.wait_until(lock, stop, began + kLeastApart, [] { return false; });
      } else {
        changed_.wait_until(lock, stop, due, [] { return false; });
      }
      asked_ = false;
    }
  }

  const Look look_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool asked_ GL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace gpuledger::task
