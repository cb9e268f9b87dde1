// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string_view>

namespace gpuledger::net {

// How long to wait after a failure: doubling, capped, and different on every node, so that not all nodes call an API
// server at once when it is back.
class Backoff {
 public:
  using Duration = std::chrono::nanoseconds;
  using Time = std::chrono::steady_clock::time_point;
  struct Pace {
    Duration first = std::chrono::milliseconds(800);
    Duration longest = std::chrono::seconds(30);      // before jitter, which at most doubles it
    Duration forget_after = std::chrono::minutes(2);  // reset after so long without failure
  };

  explicit Backoff(Pace pace, unsigned seed = std::random_device{}()) : pace_(pace), random_(seed), step_(pace.first) {}

  Duration next(Time now) {
    if (now - last_ > pace_.forget_after) step_ = pace_.first;
    last_ = now;
    const Duration base = std::min(step_, pace_.longest);
    step_ = base * 2;
    return std::chrono::duration_cast<Duration>(base * (1 + std::uniform_real_distribution<>(0, 1)(random_)));
  }

  // For callers with work that waits: a server that fails now and then must not be asked less and less.
  void succeeded() { step_ = pace_.first; }

 private:
  const Pace pace_;
  std::minstd_rand random_;
  Time last_{};
  Duration step_;
};

// The value of the header Retry-After in seconds; empty: none, or a date, which HTTP also allows.
inline std::optional<std::chrono::seconds> parse_retry_after(std::string_view text) {
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0) return std::nullopt;
  return std::chrono::seconds(std::min<int64_t>(seconds, 3600));
}

}  // namespace gpuledger::net
