// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "support/eventually.h"
#include "task/timer.h"

namespace gpuledger {

// Stands still until a test moves it. For one thread that waits, whose waits are seen here: a thread that waits for an
// hour does nothing more before that hour is over, so a test need not sleep to see that.
class ManualTimer final : public task::Timer {
 public:
  Time now() const override { return Time(Duration(now_)); }

  bool wait_until(MutexLock& lock, std::condition_variable_any& changed, const std::stop_token& stop, Time due,
                  const std::function<bool()>& condition) const override {
    const auto over = [&] {
      ++checks_;
      return stop.stop_requested() || now() >= due || condition();
    };
    if (!over()) {
      ++waits_;  // before the next line: a wait that is seen is counted
      due_ = due.time_since_epoch().count();
      // Nobody notifies when the time moves.
      while (!over()) changed.wait_for(lock, std::chrono::milliseconds(1));
      due_ = kBusy;
    }
    return condition();
  }

  void advance(Duration by) { now_ += by.count(); }

  // How long the thread still waits. Empty: it is busy.
  std::optional<Duration> waits_for() const {
    const Duration::rep due = due_;
    return due == kBusy ? std::nullopt : std::optional(Duration(due - now_));
  }
  bool eventually_waits() const {
    return eventually([&] { return waits_for().has_value(); });
  }
  bool eventually_waits_for(Duration time) const {
    return eventually([&] { return waits_for() == time; });
  }
  // For a wait with jitter.
  bool eventually_waits_for(Duration least, Duration most) const {
    return eventually([&] {
      const auto left = waits_for();
      return left && *left >= least && *left <= most;
    });
  }
  // Moves the time to the end of the wait. True: the thread has done its work and waits again.
  bool end_wait() { return eventually_waits() && move_and_wait(*waits_for()); }
  // The same for a wait that ends before this time is over.
  bool move_and_wait(Duration by) {
    if (!eventually_waits()) return false;
    const uint64_t before = waits_;
    advance(by);
    return eventually([&] { return waits_ > before && waits_for(); });
  }
  // True: the thread has looked at the time and at its condition once more, and waits on.
  bool stays() const {
    const uint64_t waits = waits_;
    const uint64_t checks = checks_;
    return eventually([&] { return waits_ != waits || checks_ >= checks + 2; }) && waits_ == waits && waits_for();
  }

 private:
  static constexpr Duration::rep kBusy = -1;

  std::atomic<Duration::rep> now_ = Duration(std::chrono::hours(1)).count();
  mutable std::atomic<Duration::rep> due_ = kBusy;
  mutable std::atomic<uint64_t> waits_ = 0;
  mutable std::atomic<uint64_t> checks_ = 0;
};

}  // namespace gpuledger
