// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "base/clock.h"

namespace gpuledger {

// Another object's clock, valid as long as that object lives: a driver call that hangs may outlive its source and the
// source's clock.
class BorrowedClock final : public Clock {
 public:
  explicit BorrowedClock(const Clock& clock) : clock_(&clock) {}
  Timestamp now() const override {
    const std::lock_guard lock(mutex_);
    return clock_ ? clock_->now() : Timestamp{};
  }
  void give_back() {
    const std::lock_guard lock(mutex_);
    clock_ = nullptr;
  }

 private:
  mutable std::mutex mutex_;
  const Clock* clock_;
};

}  // namespace gpuledger
