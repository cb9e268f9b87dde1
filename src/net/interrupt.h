// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>

#include "base/file.h"

namespace gpuledger::net {

// Ends the waits of a source's thread, now and from then on. Raised by another thread. A descriptor, so that one poll
// waits for it and a socket. Without a free descriptor waits end only by their timeouts.
class Interrupt {
 public:
  using Clock = std::chrono::steady_clock;

  Interrupt() = default;
  explicit Interrupt(const std::stop_token& stop) {
    on_stop_.emplace(stop, [this] { raise(); });
  }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  void raise() {
    const uint64_t one = 1;
    while (fd_ && ::write(fd_.get(), &one, sizeof one) < 0 && errno == EINTR) {}
  }
  bool raised() const { return wait_for(Clock::duration::zero()); }
  // True: raised. False: timeout.
  bool wait_for(Clock::duration time) const {
    const auto end = Clock::now() + time;
    while (true) {
      pollfd one{fd_.get(), POLLIN, 0};
      if (::poll(&one, 1, milliseconds_until(end)) > 0) return true;
      if (Clock::now() >= end) return false;
    }
  }
  int fd() const { return fd_.get(); }

  // For poll: rounded up, else the last fraction of a millisecond would spin.
  static int milliseconds_until(Clock::time_point end) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 3'600'000));
  }

 private:
  UniqueFd fd_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

}  // namespace gpuledger::net
